from __future__ import annotations

import re
from collections.abc import Sequence

from cluster.answers import ExactAnswer, Question, QuestionType
from cluster.models.readings import ScoredSpan
from cluster.records import Entity
from serve.answer.extract_answer import extract_exact
from serve.answer.names.cluster_names import Recognise
from serve.answer.names.group_names import apart, group_names
from serve.answer.names.rank_names import rank_names
from serve.answer.read_evidence import ReadCitation
from tests.serve.answering import citation, evidence

NAMES = {
    "epidermal growth factor receptor": "D1",
    "EGFR": "D1a",
    "BRCA1": "D2",
    "TP53": "D3",
    "cancer": "D4",
}


def recognise(text: str) -> list[Entity]:
    return [
        Entity(name, m.start(), m.end(), concept, "gene")
        for name, concept in NAMES.items()
        for m in re.finditer(re.escape(name), text)
    ]


def no_one(text: str) -> list[Entity]:
    return []


def read(*texts: str, names: str = "|".join(NAMES), score: float = 0.8) -> list[ReadCitation]:
    """Return citations in which a reader gives each of `names` the score `score`."""
    return [
        citation(text, pmid, relevance=0.9, names=_spans(text, names, score))
        for pmid, text in enumerate(texts, 1)
    ]


def _spans(text: str, names: str, score: float) -> tuple[ScoredSpan, ...]:
    found = re.finditer(names, text, re.IGNORECASE)
    return tuple(ScoredSpan(match.start(), match.end(), score) for match in found)


def asked(kind: QuestionType, body: str = "Which gene?") -> Question:
    return Question("q", body, kind)


def exact_of(
    question: Question, citations: Sequence[ReadCitation], known: Recognise = recognise
) -> ExactAnswer:
    return extract_exact(question, citations, rank_names(question.body, citations, known))


def test_yesno_follows_the_balance_of_the_evidence() -> None:
    for said, answer in [
        ([(0.9, 0.0)], "yes"),
        ([(0.0, 0.9)], "no"),
        ([(0.9, 0.0), (0.0, 0.9), (0.0, 0.8)], "no"),
        ([(0.1, 0.0), (0.0, 0.9)], "no"),
        ([], "no"),
    ]:
        found = [citation(pmid=n, yes=yes, no=no) for n, (yes, no) in enumerate(said, 1)]
        assert exact_of(asked("yesno"), found) == answer, said


def test_factoid_has_names_close_to_the_best() -> None:
    found = [*read("BRCA1 is it.", names="BRCA1"), *read("TP53 is too.", names="TP53", score=0.3)]
    assert exact_of(asked("factoid"), found) == [["BRCA1"]]
    many = read("tic tac toe one two three four", names=r"\w+")
    exact = exact_of(asked("factoid", "Which word?"), many, no_one)
    assert isinstance(exact, list)
    assert len(exact) == 5


def test_unlikely_list_items_are_left_out() -> None:
    found = read(*["BRCA1 is here."] * 6, "TP53 is here.")
    assert exact_of(asked("list"), found) == [["BRCA1"]]
    assert exact_of(asked("list"), read("BRCA1 and TP53.")) == [["BRCA1"], ["TP53"]]


def test_exact_answer_without_names_is_empty() -> None:
    for kind, exact in [("factoid", []), ("list", []), ("summary", None), ("unknown", None)]:
        assert exact_of(asked(kind), read("Cats sleep most of the day.")) == exact  # type: ignore[arg-type]


def test_names_are_grouped_with_the_forms_that_the_evidence_defines() -> None:
    found = evidence("The epidermal growth factor receptor (EGFR) is here, TP53 too.")
    names = ["EGFR", "TP53", "epidermal growth factor receptor", "tp53"]
    egfr = ["EGFR", "epidermal growth factor receptor"]
    assert group_names(names, found, recognise) == [egfr, ["TP53", "tp53"]]
    items = evidence("Phosphodiesterase 4B (PDE4B) is blocked, as is TP53.")
    grouped = group_names(["PDE4B", "TP53"], items, no_one)
    assert grouped == [["PDE4B", "Phosphodiesterase 4B"], ["TP53"]]
    assert apart(grouped) == [["PDE4B"], ["Phosphodiesterase 4B"], ["TP53"]]
