"""The reader's training examples from BioASQ, tables and contrast sets."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.text.sentences import sentence_spans
from pipelines.train.examples.mark_names import Marked
from pipelines.train.examples.read_questions import Corpus
from pipelines.train.reader import claims, hard_negatives
from pipelines.train.reader.abstracts import AbstractQuestion
from pipelines.train.reader.bioasq import (
    LEAST_SCORE,
    answering,
    bioasq_examples,
    embed,
    read_answered,
    silent,
)
from pipelines.train.reader.claims import (
    abstract_claim_examples,
    claim_examples,
    mention_examples,
    nonsense_examples,
    read_marks,
    read_rows,
)
from pipelines.train.reader.hard_negatives import hard_negative_examples
from pipelines.train.reader.records import NO, SILENT, YES, ReaderExample, balance_sides
from pipelines.train.reader.tables import attribute_examples, contrast_examples, read_table
from tests.pipelines.train.tiny_data import abstract, gold_row, write_gold, write_lines

SAYS = "Aspirin reduces fever in patients."
GOLD = f"We gave a drug. {SAYS} The heart is not in this study."
OTHER = "The gene inhibits a protein. Blood is in the heart."
CORPUS = Corpus((GOLD, OTHER, "A cell does bleeding."), {1: 0, 2: 1, 3: 2})
FACTOID = {"body": "What reduces fever?", "type": "factoid", "exact_answer": [["aspirin", "ASA"]]}
CLAIM_KEYS = ("ask", "opposite", "affirms", "denies", "open")
MENTION_KEYS = ("ask", "says", "open")


def words_of(example: ReaderExample) -> list[str]:
    return words_in(example.text, example.names or ())


def words_in(text: str, marks: Sequence[Marked]) -> list[str]:
    return [text[mark.begin : mark.end] for mark in marks]


def check_places(examples: list[ReaderExample]) -> None:
    """Check the sentence spans, the name spans and the sums of the stances."""
    for example in examples:
        if example.sentences is not None:
            spans = [(s.begin, s.end) for s in example.sentences]
            assert spans == sentence_spans(example.text), example
            assert all(0 <= s.score <= 1 for s in example.sentences)
        assert all(0 <= m.begin < m.end <= len(example.text) for m in example.names or ())
        assert example.stance is None or sum(example.stance) == pytest.approx(1)


def test_read_answered_returns_gold_answers(tmp_path: Path) -> None:
    path = write_gold(
        tmp_path / "q.json",
        gold_row(),
        gold_row(exact_answer=" No "),
        gold_row(**FACTOID),
        gold_row(type="list", exact_answer=[["a"], "b"], ideal_answer="Two."),
        gold_row(type="summary", exact_answer="ignored"),
        gold_row(snippets=[]),
        gold_row(ideal_answer=None),
    )
    yes, no, factoid, listed, summary = read_answered([path])
    assert (yes.stance, no.stance, factoid.stance) == (YES, NO, None)
    assert (factoid.names, listed.names) == ((("aspirin", "ASA"),), (("a",), ("b",)))
    assert (summary.names, summary.stance, summary.pmids) == ((), None, frozenset({1}))
    assert (yes.snippets, listed.ideal) == ((SAYS,), ("Two.",))


def test_invalid_questions_are_refused_with_their_position(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for change in [
        {"exact_answer": "perhaps"},
        {"exact_answer": ["yes"]},
        {"documents": ["no number"]},
        {"snippets": [{}]},
        {"ideal_answer": 3},
    ]:
        with subtests.test(change=change):
            path = write_gold(tmp_path / "q.json", gold_row(), gold_row(**change))
            with pytest.raises(InputError, match=r"q\.json: question 1: not a gold question"):
                read_answered([path])
    with pytest.raises(InputError, match="no question has snippets"):
        read_answered([write_gold(tmp_path / "q.json", gold_row(snippets=[]))])


def test_answering_text_has_name_spans_and_scored_sentences(tmp_path: Path) -> None:
    [question] = read_answered([write_gold(tmp_path / "q.json", gold_row(**FACTOID))])
    example = answering(question, GOLD, 0.7)
    check_places([example])
    assert words_of(example) == ["Aspirin"]
    first, second, third = example.sentences or ()
    assert (first.score, third.score) == (0.0, 0.0)
    assert LEAST_SCORE <= second.score <= 1.0
    assert (example.relevant, example.stance, example.weight) == (1.0, None, 0.7)
    quiet = silent("Is it?", OTHER, 0.5, sided=True)
    check_places([quiet])
    assert (quiet.relevant, quiet.stance, quiet.names) == (0.0, SILENT, ())
    assert silent("What?", OTHER, 0.5, sided=False).stance is None


def test_embed_inserts_the_text_among_sentences_of_another() -> None:
    places = set()
    for seed in range(40):
        text = embed(SAYS, OTHER, random.Random(seed))
        assert text.replace(SAYS, "").split() == OTHER.split()
        places.add(text.index(SAYS))
    assert len(places) == 3
    long = "Blood is in the heart. " * 20
    assert embed(SAYS, long, random.Random(1), most=2).count("Blood") == 2


def made(tmp_path: Path, seed: int = 0, **changes: object) -> list[ReaderExample]:
    questions = read_answered([write_gold(tmp_path / "q.json", gold_row(**changes))])
    return list(bioasq_examples(questions, CORPUS, [[0, 1]], random.Random(seed)))


def test_yes_no_question_yields_citations_snippets_and_negatives(tmp_path: Path) -> None:
    for exact, stance in [("yes", YES), ("no", NO)]:
        for seed in range(5):
            examples = made(tmp_path, seed, exact_answer=exact)
            check_places(examples)
            relevant = [e for e in examples if e.relevant]
            assert [e.stance for e in relevant] == [stance] * 3
            assert all(SAYS in e.text and e.names is None for e in relevant)
            assert [e.text for e in relevant[1:]] == [SAYS, SAYS]
            others = [e for e in examples if not e.relevant]
            assert {e.stance for e in others} == {SILENT}
            assert others[0].text == OTHER


def test_factoid_question_marks_names_and_excludes_them_from_negatives(tmp_path: Path) -> None:
    for seed in range(10):
        examples = made(tmp_path, seed, **FACTOID)
        check_places(examples)
        assert all(e.stance is None for e in examples)
        for example in examples:
            assert words_of(example) == (["Aspirin"] if example.relevant else [])
            assert bool(example.relevant) == ("Aspirin" in example.text)


def test_tables_yield_the_requested_number_of_filled_examples() -> None:
    texts = [GOLD, OTHER]
    contrast = list(contrast_examples(600, texts, random.Random(1)))
    attributes = list(attribute_examples(300, texts, random.Random(1)))
    assert (len(contrast), len(attributes)) == (600, 300)
    check_places([*contrast, *attributes])
    for example in (*contrast, *attributes):
        assert "{" not in example.question + example.text
        assert 0 < example.weight < 1
    assert contrast == list(contrast_examples(600, texts, random.Random(1)))
    assert all((e.stance == SILENT) == (e.relevant == 0) for e in contrast)


def test_contrast_examples_have_all_stances_and_balance_yes_and_no() -> None:
    for row in read_table("propositions")["propositions"]:
        assert not set(row["affirms"]) & set(row["denies"]), row["ask"]
    stances = [e.stance for e in contrast_examples(3000, [OTHER], random.Random(2))]
    assert min(stances.count(stance) for stance in (YES, NO, SILENT)) > 500
    assert 0.7 < stances.count(YES) / stances.count(NO) < 1.4


def test_attribute_examples_mark_names_only_in_the_answer() -> None:
    examples = list(attribute_examples(400, [OTHER], random.Random(3)))
    answered = [example for example in examples if example.relevant]
    assert 200 < len(answered) < 350
    for example in answered:
        assert example.names
        scores = [s for s in example.sentences or () if s.score]
        assert scores
        for mark in example.names:
            assert any(s.begin <= mark.begin < s.end for s in scores)
    for example in examples:
        if not example.relevant:
            assert example.names == ()
            assert not any(s.score for s in example.sentences or ())


def test_claim_examples_ask_both_directions() -> None:
    rows = read_rows("claims", CLAIM_KEYS)
    asked = {q: (row, YES, NO) for row in rows for q in row["ask"]}
    asked |= {q: (row, NO, YES) for row in rows for q in row["opposite"]}
    examples = list(claim_examples(3000, [OTHER], random.Random(4)))
    check_places(examples)
    repeated = Counter(q for row in rows for q in (*row["ask"], *row["opposite"]))
    for example in examples:
        if repeated[example.question] > 1:
            continue
        row, affirmed, denied = asked[example.question]
        affirms = [s for s in row["affirms"] if s in example.text]
        denies = [s for s in row["denies"] if s in example.text]
        assert not (affirms and denies), example
        assert example.stance == (affirmed if affirms else denied if denies else SILENT), example
        says = [s for s in example.sentences or () if s.score]
        assert bool(says) == bool(affirms or denies)
    stances = [e.stance for e in examples]
    assert min(stances.count(stance) for stance in (YES, NO, SILENT)) > 850
    assert sum(len(sentence_spans(e.text)) > 2 for e in examples) > 850
    assert all((e.stance == SILENT) == (e.relevant == 0) for e in examples)


def test_nonsense_questions_have_no_answer() -> None:
    texts = [OTHER, SAYS, "Statins lower cholesterol. Fibrates lower triglycerides."]
    examples = list(nonsense_examples(200, texts, random.Random(3)))
    check_places(examples)
    assert {e.relevant for e in examples} == {0.0, None}
    assert all(e.stance == SILENT and e.names == () for e in examples)
    assert {len(e.question.split()) for e in examples} >= {1, 2, 3}


def test_hard_negatives_are_texts_of_other_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"affirms": [SAYS], "denies": ["Aspirin does not reduce fever."], "open": ["It is old."]}
    asked = "Does aspirin reduce fever?"
    one = {"ask": [asked, "Is fever reduced by aspirin?"], "opposite": ["Is aspirin useless?"]}
    other = {"ask": [asked], "opposite": ["Is aspirin unsafe?"], **{key: ["Safe."] for key in said}}
    rows = {"claims": [{**one, **said}, other], "abstracts": []}
    monkeypatch.setattr(hard_negatives, "read_rows", lambda name, keys: rows[name])
    questions = [AbstractQuestion("Does aspirin reduce fever in children?", YES, 7)]
    near = "Aspirin and fever in children with Reye syndrome: does it reduce survival?"
    abstracts = {7: abstract(7, "Fever fell in children."), 8: abstract(8, near)}
    draw = random.Random(4)
    examples: list[ReaderExample] = []
    for _ in range(12):
        examples += hard_negative_examples(5, questions, abstracts, draw)
    check_places(examples)
    assert {e.relevant for e in examples} == {0.0}
    assert all(e.stance == SILENT and e.names == () for e in examples)
    texts: dict[str, str] = defaultdict(str)
    for example in examples:
        texts[example.question] += example.text
    # Two rows ask the first question, so neither may provide its text.
    for question, own in ((asked, SAYS), (asked, "Safe."), (one["ask"][1], SAYS)):
        assert texts[question]
        assert own not in texts[question]
    assert "Safe." in texts[one["ask"][1]]
    assert "Fever fell" not in texts[questions[0].question]


def test_abstract_claims_have_both_answers() -> None:
    sides = {"yes": YES, "no": NO, "silent": SILENT}
    rows = read_rows("abstracts", ("text", *sides))
    labels = {(q, row["text"]): sides[s] for row in rows for s in sides for q in row[s]}
    examples = list(abstract_claim_examples(5 * len(rows), random.Random(6)))
    assert all(labels[e.question, e.text] == e.stance for e in examples)
    count = len(rows)
    assert Counter(e.stance for e in examples) == {YES: 2 * count, NO: 2 * count, SILENT: count}
    assert all((e.stance == SILENT) == (e.relevant == 0) for e in examples)


def test_mention_examples_mark_names_in_answering_texts() -> None:
    answers = {
        (question, name)
        for row in read_rows("mentions", MENTION_KEYS)
        for says in row["says"]
        for question in row["ask"]
        for name in words_in(*read_marks(says))
    }
    examples = list(mention_examples(1500, [OTHER], random.Random(5)))
    check_places(examples)
    for example in examples:
        assert bool(example.names) == bool(example.relevant), example
        assert all((example.question, name) in answers for name in words_of(example))
        assert "[[" not in example.text
    assert 800 < sum(bool(e.names) for e in examples) < 1200


def test_contrast_set_row_without_a_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "training").mkdir()
    write_lines(tmp_path / "training" / "claims.jsonl", [{"ask": ["Is it?"], "open": ["It."]}])
    monkeypatch.setattr(claims, "CONFIGS", tmp_path)
    with pytest.raises(InputError, match="line 1: the row has no opposite, affirms, denies: add"):
        next(claim_examples(1, [OTHER], random.Random(1)))


def test_balance_sides_draws_as_many_yes_as_no() -> None:
    texts = [ReaderExample("q", str(n), 1.0, YES) for n in range(90)]
    texts += [ReaderExample("q", str(n), 1.0, NO) for n in range(30)]
    texts += [ReaderExample("q", str(n), 0.0, SILENT) for n in range(40)]
    drawn = balance_sides(texts, 50, random.Random(1))
    assert Counter(str(e.stance) for e in drawn) == {str(YES): 21, str(NO): 21, str(SILENT): 8}
    # The smaller side limits both.
    drawn = balance_sides(texts, 120, random.Random(1))
    assert Counter(str(e.stance) for e in drawn) == {str(YES): 30, str(NO): 30, str(SILENT): 40}
