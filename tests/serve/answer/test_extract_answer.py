from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cluster.answers import Evidence, Question, QuestionType, Sentence
from cluster.models.readings import Reading
from serve.answer.extract_answer import extract_ideal, find_candidates, quote_side, states
from serve.answer.names.rank_names import RankedName
from serve.answer.read_evidence import ReadCitation, read_evidence
from serve.answer.section_labels import strip_brackets
from tests.serve.answering import WordReader, evidence, passage

BODY = "Does metformin lower blood glucose?"
BEST = "Metformin does lower the blood glucose of adults."
NEXT = "The drug metformin is taken by many adults."
OTHER = "Losartan is taken for high blood pressure today."
DENIAL = "Metformin does not lower the blood glucose of adults."


def asked(kind: QuestionType = "summary", body: str = BODY) -> Question:
    return Question("q", body, kind)


def read(*parts: str, body: str = BODY) -> list[ReadCitation]:
    return read_evidence(body, evidence(*parts), WordReader())


def ideal(*parts: str, kind: QuestionType = "summary", **options: int) -> tuple[Sentence, ...]:
    return extract_ideal(asked(kind), read(*parts), **options)


def texts(*parts: str, kind: QuestionType = "summary", **options: int) -> list[str]:
    return [sentence.text for sentence in ideal(*parts, kind=kind, **options)]


def titled(*titles: str, text: str = "") -> list[str]:
    """Return the answer from citations that have only a title, or `text` as their passage."""
    items = [
        Evidence(passage(text or title, n, title=not text), title=title)
        for n, title in enumerate(titles, 1)
    ]
    found = extract_ideal(asked(), read_evidence(BODY, items, WordReader()))
    return [sentence.text for sentence in found]


def test_best_sentence_comes_first_and_cites_its_source() -> None:
    assert texts(OTHER, f"{NEXT} {BEST}")[0] == BEST
    best = ideal(OTHER, BEST)[0]
    assert (best.text, best.pmids, best.support) == (BEST, (2,), 1.0)
    # A repeated sentence cites its first three sources; case does not count.
    assert [s.pmids for s in ideal(*[BEST] * 5)] == [(1, 2, 3)]
    assert [s.pmids for s in ideal(BEST, BEST.upper())] == [(1, 2)]
    assert sorted(texts(BEST, DENIAL)) == sorted([BEST, DENIAL])


def test_numbers_of_sentences_and_words_are_limited() -> None:
    assert len(texts(BEST, NEXT, OTHER, max_sentences=2)) == 2
    assert len(texts(BEST, NEXT, OTHER, kind="yesno")) == 1
    # Fragments can be long; one that would exceed the word limit is skipped.
    first, second = (text.removesuffix(".") + " and more" * 60 for text in (BEST, NEXT))
    assert len(texts(first)) == len(texts(second)) == len(texts(first, second)) == 1


def test_fragments_are_used_only_without_whole_sentences() -> None:
    cut = "2018;38:1442-1454), which tells how metformin does lower blood glucose."
    overlong = "Does metformin lower blood glucose " + "and more " * 50 + "."
    for fragment in ("lower blood glucose by metformin in", cut, overlong):
        assert texts(fragment, NEXT) == [NEXT]
        assert texts(fragment) == [fragment]
    listed = "Metformin does 1) lower blood glucose and 2) spare the kidney."
    assert texts(listed) == [listed]


def test_title_without_full_stop_or_in_brackets_is_quoted() -> None:
    title = "Metformin and blood glucose in adults"
    assert titled(title, "lower blood glucose by metformin in adults") == [title]
    assert titled(f"[{title}].") == [title]
    title = "Metformin and lower blood glucose in adults"
    assert sorted(titled(title, text=NEXT)) == sorted([title, NEXT])


def test_strip_brackets_keeps_inner_brackets() -> None:
    stripped = {
        "[Metformin in adults].": "Metformin in adults",
        "[Glucose in adults.": "Glucose in adults.",
        "A review].": "A review",
        "Metformin and [18F]glucose in adults": "Metformin and [18F]glucose in adults",
        "[18F]glucose in adults": "[18F]glucose in adults",
    }
    assert {sentence: strip_brackets(sentence) for sentence in stripped} == stripped


def test_questions_links_and_short_texts_are_not_quoted() -> None:
    unquoted = [
        "Does metformin lower blood glucose in adults?",
        "[Not Available].",
        "It does.",
        "Metformin does lower blood glucose, see https://example.org/metformin for more.",
        "",
    ]
    assert [text for text in unquoted if texts(text)] == []
    assert texts() == []


def test_section_label_is_removed() -> None:
    assert texts(f"CONCLUSIONS: {BEST}") == [BEST]
    assert texts(f"CONCLUSIONS {BEST}") == [BEST]


def test_lower_rank_lowers_the_score() -> None:
    parts = [OTHER, BEST, *["Aspirin was taken by all of them."] * 3]
    scores = {c.citation.pmid: c.score for c in find_candidates(read(*parts))}
    [first] = find_candidates(read(BEST))
    assert scores[2] < first.score


def test_sentence_with_the_best_name_comes_first() -> None:
    question = asked("factoid", "Which drug does lower blood glucose?")
    likely = "Which drug does lower blood glucose was asked."
    naming = "Blood glucose is lower after metformin in adults."
    citations = read(likely, naming, body=question.body)
    answers = [RankedName(("Metformin",), 0.9), RankedName(("asked",), 0.5)]
    assert [s.text for s in extract_ideal(question, citations)] == [likely, naming]
    assert [s.text for s in extract_ideal(question, citations, answers)] == [naming, likely]
    assert states(naming, ["heparin", "METFORMIN"])
    assert not states(naming, ["heparin"])


def test_first_yesno_sentence_is_on_the_side_of_the_evidence() -> None:
    assert texts(f"{NEXT} {BEST}", BEST, kind="yesno") == [BEST]
    assert texts(f"{NEXT} {DENIAL}", DENIAL, kind="yesno") == [DENIAL]


class Divided(WordReader):
    """Reader that finds a yes in the first citation and a no in the others."""

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        found = super().read(question, passages)
        sides = [(0.9, 0.0), *[(0.0, 0.9)] * (len(found) - 1)]
        return [
            replace(reading, relevance=1.0, yes=yes, no=no, silent=0.1)
            for reading, (yes, no) in zip(found, sides, strict=True)
        ]


def test_quote_side_without_a_usable_sentence_is_none() -> None:
    citations = read_evidence(BODY, evidence(BEST, "It does not."), Divided())
    assert quote_side(find_candidates(citations), "no") is None
