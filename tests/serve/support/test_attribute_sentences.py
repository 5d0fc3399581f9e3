from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.models.readings import Reading
from serve.support.attribute_sentences import (
    ReaderSupport,
    SimilaritySupport,
    Support,
    as_question,
    attribute,
)
from tests.serve.answering import encode, evidence

LOSARTAN = "Losartan was not effective in reducing brain atrophy in 12 months."
METFORMIN = "Metformin lowers blood glucose by 30% in type 2 diabetes."


class Fixed:
    """Scorer that looks up each premise in a table and ignores the hypothesis."""

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores = scores

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        return [Support(self.scores[premise]) for premise, _ in pairs]


def cite(sentence: str, *texts: str) -> tuple[int, ...]:
    (found,) = attribute([sentence], evidence(*texts), SimilaritySupport(encode), threshold=0.5)
    return found.pmids if found else ()


def test_sentence_cites_the_passage_that_states_it() -> None:
    for said, texts, pmids in [
        ("Metformin lowers blood glucose.", (LOSARTAN, METFORMIN), (2,)),
        ("Aspirin prevents colorectal cancer.", (LOSARTAN, METFORMIN), ()),
        ("Metformin lowers blood glucose by 40% in type 2 diabetes.", (METFORMIN,), ()),
        # The number is that of another sentence.
        ("A lowers mortality by 30%.", ("A lowers mortality by 12%. Headache came in 30%.",), ()),
        # The best sentence of a passage counts.
        (METFORMIN, (f"We asked. {METFORMIN} More work is needed on many other matters.",), (1,)),
    ]:
        assert cite(said, *texts) == pmids, said


@pytest.mark.parametrize(
    ("scores", "pmids"),
    [
        ((0.7, 0.9, 0.9, 0.8, 0.75), (2, 3, 4)),
        ((1.0, 0.6), (1,)),
        ((0.6, 0.9), (2,)),
        ((0.5,), (1,)),
        ((0.49,), None),
        ((), None),
    ],
    ids=["three at most", "none much weaker", "best first", "at the threshold", "below", "none"],
)
def test_supporting_passages_are_cited_by_strength(
    scores: tuple[float, ...], pmids: tuple[int, ...] | None
) -> None:
    texts = dict(zip("abcde", scores, strict=False))
    (found,) = attribute(["S."], evidence(*texts), Fixed(texts), threshold=0.5)
    assert (found and (found.pmids, found.support)) == (pmids and (pmids, max(scores)))


def test_sentences_are_attributed_in_order() -> None:
    said = ["Metformin lowers blood glucose.", "Cats sleep."]
    found = attribute(said, evidence(METFORMIN), SimilaritySupport(encode), threshold=0.5)
    assert [f.text if f else None for f in found] == ["Metformin lowers blood glucose.", None]


def says_no(question: str, texts: Sequence[str]) -> list[Reading]:
    """A reader that says no if the text has "not"."""
    return [Reading(0.9, *((0.1, 0.8, 0.1) if " not " in t else (0.8, 0.1, 0.1))) for t in texts]


def test_reader_judges_which_premises_contradict() -> None:
    asked: list[tuple[str, Sequence[str]]] = []

    def read(question: str, texts: Sequence[str]) -> list[Reading]:
        asked.append((question, texts))
        return says_no(question, texts)

    claim = "No, losartan was effective in reducing brain atrophy in 12 months."
    plain = LOSARTAN.replace("not ", "")
    scorer = ReaderSupport(SimilaritySupport(encode), read, 0.5)
    against, for_, other = scorer.score([(p, claim) for p in (LOSARTAN, plain, METFORMIN)])
    question = "Is it true that losartan was effective in reducing brain atrophy in 12 months?"
    assert asked == [(question, [plain, LOSARTAN])]
    assert (against.score, against.against) == (0.0, 0.9 * 0.8)
    assert (for_.score > 0.5, for_.against, other.against) == (True, 0.0, 0.0)


def test_sentences_of_a_long_premise_are_also_read_separately() -> None:
    """A reader may accept a whole premise although one of its sentences denies the claim."""

    def read(question: str, texts: Sequence[str]) -> list[Reading]:
        yes = Reading(0.9, 0.8, 0.1, 0.1)
        return [says_no(question, [t])[0] if t == LOSARTAN else yes for t in texts]

    claim = "Losartan was effective in reducing brain atrophy in 12 months."
    scorer = ReaderSupport(SimilaritySupport(encode), read, 0.5)
    long, quoted = f"{METFORMIN} {LOSARTAN}", f"{METFORMIN} {claim}"
    against, for_ = scorer.score([(long, claim), (quoted, claim)])
    assert (against.score, against.against > 0.5) == (0.0, True)
    assert for_.score == pytest.approx(1.0)


def test_reader_reads_only_the_nearest_premises() -> None:
    asked: list[str] = []

    def read(question: str, texts: Sequence[str]) -> list[Reading]:
        asked.extend(texts)
        return says_no(question, texts)

    premises = [f"Losartan reduced brain atrophy in {number} patients." for number in range(50)]
    claim = "Losartan reduced brain atrophy in patients with Alzheimer disease."
    pairs = [(premise, claim) for premise in premises]
    ReaderSupport(SimilaritySupport(encode), read, 0.3, 10).score(pairs)
    assert len(asked) == 10
    ReaderSupport(SimilaritySupport(encode), read, 0.3).score(pairs)
    assert len(asked) == 10 + 50


def test_reader_skips_premises_that_quote_the_claim() -> None:
    scorer = ReaderSupport(SimilaritySupport(encode), says_no)
    (support,) = scorer.score([(f"{METFORMIN} {LOSARTAN}", LOSARTAN)])
    assert support.score == pytest.approx(1.0)


def test_as_question_keeps_questions() -> None:
    assert as_question("Does losartan help?") == "Does losartan help?"
