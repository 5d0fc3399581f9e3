"""Primary studies behind a review's sentences, through the HTTP service with fake models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from cluster.answers import Answer, Sentence
from cluster.models.readings import Reading
from cluster.records import Link
from serve.answer.read_evidence import CachedReader
from serve.answer.write_answer import WrittenAnswer
from serve.contracts.request import Request
from serve.pipeline.cascade import Budget
from serve.pipeline.trace_sources import NOT_TRACED
from tests.serve.answering import WordReader
from tests.serve.api import client_of
from tests.serve.service import SmallService
from tests.serve.small_graph import parts_of
from tests.small_index import citation

QUESTION = "Does imatinib inhibit BCR-ABL?"
ASKED = "Imatinib inhibits BCR-ABL kinase."
SAID = "In the HEART trial, valsartan reduced strokes by 25%."
OWN = "Valsartan reduced strokes by 25% in adults."
REVIEW, TRIAL, OTHER_NUMBER, RETRACTED, OLD_REVIEW, META, UNLISTED, LETTER = range(101, 109)
NOTICED, NOTICE = 109, 110
# Studies that may not be used come first, so that they would be chosen before the trial.
LISTED = (OTHER_NUMBER, RETRACTED, NOTICED, OLD_REVIEW, LETTER, TRIAL, 999)
TYPED = {"publication_types": ("Review",)}
TEXT = f"{ASKED} {SAID}"
CORPUS = [
    citation(REVIEW, TEXT, "A review", **TYPED, references=LISTED, year=2000),
    citation(TRIAL, OWN, "The trial", year=2010),
    citation(OTHER_NUMBER, "Valsartan reduced strokes by 35% in adults.", "Another trial"),
    citation(RETRACTED, OWN, "A retracted trial", links=(Link("RetractionIn", 9, "J"),)),
    citation(OLD_REVIEW, OWN, "An older review", **TYPED),
    citation(
        META, TEXT, "Pooled", publication_types=("Meta-Analysis",), references=(OTHER_NUMBER,)
    ),
    citation(UNLISTED, TEXT, "A review without references", **TYPED, references=()),
    citation(LETTER, OWN, "A letter", publication_types=("Comment",)),
    citation(NOTICED, OWN, "A trial that only a notice retracts"),
    citation(NOTICE, "", "Retraction", links=(Link("RetractionOf", NOTICED, "J"),)),
]


class Decided(SmallService):
    """Service whose answers have the only sentence `said`, which cites `pmids`.

    `style` changes the preset's answer settings.
    """

    said, pmids, style = "", (), {}  # type: ignore[var-annotated]

    def __init__(self) -> None:
        super().__init__(citations=CORPUS, decide=self.decide)
        self.http = client_of(self)

    def decide(self, written: WrittenAnswer) -> WrittenAnswer:
        return replace(written, ideal=(Sentence(self.said, self.pmids, 0.9),), verdict="answered")

    async def answer(self, request: Request) -> Answer:
        answer = request.system.answer.model_copy(update=self.style)
        system = request.system.model_copy(update={"answer": answer})
        return await super().answer(replace(request, system=system))


service = cache(Decided)


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    """Build the service before the tests, so that no test takes long."""
    service()


def ask(
    *pmids: int, said: str = SAID, style: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """Return the reply to QUESTION of a service whose answer is `said`, citing `pmids`."""
    decided = service()
    decided.said, decided.pmids, decided.style = said, pmids, style or {}
    reply = decided.http.post("/v1/answer", json={"question": QUESTION, **fields})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def only(answer: dict[str, Any]) -> dict[str, Any]:
    (sentence,) = answer["ideal"]
    found: dict[str, Any] = sentence
    return found


def losses(answer: dict[str, Any]) -> list[str]:
    """Return the entries of `degraded` about tracing; these services have no language model."""
    return [loss for loss in answer["degraded"] if NOT_TRACED in loss]


def test_sentence_of_a_review_cites_the_trial_that_it_reports() -> None:
    answer = ask(REVIEW)
    assert only(answer)["traced"] == {"kind": "primary", "via": REVIEW, "pmid": TRIAL}
    assert sorted(only(answer)["pmids"]) == [REVIEW, TRIAL]
    (study,) = [item for item in answer["evidence"] if item["passage"]["pmid"] == TRIAL]
    assert (study["title"], study["passage"]["text"]) == ("The trial", OWN)
    assert "trace" in answer["timings_ms"]
    assert not losses(answer)


@pytest.mark.parametrize("fields", [{"filters": {"year_to": 2005}}, {"exclude": [TRIAL]}])
def test_review_is_secondary_if_its_study_may_not_be_used(fields: dict[str, Any]) -> None:
    sentence = only(ask(REVIEW, **fields))
    assert sentence["traced"] == {"kind": "secondary", "via": REVIEW, "pmid": None}
    assert sentence["pmids"] == [REVIEW]


def test_results_of_a_meta_analysis_and_unknown_references_are_not_called_secondary() -> None:
    pooled = "Valsartan reduced strokes by 25%."
    assert only(ask(META, said=pooled))["traced"] is None
    assert only(ask(META))["traced"]["kind"] == "secondary"
    answer = ask(UNLISTED)
    assert only(answer)["traced"] is None
    assert not losses(answer)


@pytest.mark.parametrize(
    ("yes", "pmids"), [(1.0, [TRIAL, REVIEW]), (0.9, [REVIEW, TRIAL]), (0.1, [REVIEW])]
)
def test_study_that_supports_less_than_the_review_is_cited_after_it(
    yes: float, pmids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unsure(WordReader):
        def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
            found = super().read(question, passages)
            return [
                replace(reading, yes=0.99 if SAID in text else yes)
                for reading, text in zip(found, passages, strict=True)
            ]

    monkeypatch.setattr(parts_of(service())["writer"], "_reader", CachedReader(Unsure()))
    assert only(ask(REVIEW))["pmids"] == pmids


def test_sources_are_not_traced_if_a_preset_says_so() -> None:
    answer = ask(REVIEW, style={"primary_sources": False})
    assert only(answer)["traced"] is None
    assert "trace" not in answer["timings_ms"]


def test_lost_tracing_is_stated_only_if_there_was_a_review_to_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no encoder")

    monkeypatch.setattr(parts_of(service())["encoder"], "encode_passages", fail)
    answer = ask(REVIEW)
    assert (only(answer)["pmids"], only(answer)["traced"]) == ([REVIEW], None)
    assert losses(answer) == [f"embed: failed, {NOT_TRACED}"]
    assert not losses(ask(OTHER_NUMBER, said="Valsartan works."))


def test_tracing_ends_with_the_budget_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = parts_of(service())["encoder"]
    encode = encoder.encode_passages

    def encode_slowly(passages: Sequence[str]) -> object:
        # Longer than the millisecond that a stage gets in any case.
        time.sleep(0.1)
        return encode(passages)

    monkeypatch.setattr(encoder, "encode_passages", encode_slowly)
    monkeypatch.setattr(Budget, "left_ms", 0.0)
    answer = ask(REVIEW)
    assert only(answer)["traced"] is None
    assert losses(answer) == [f"trace: late, {NOT_TRACED}"]
