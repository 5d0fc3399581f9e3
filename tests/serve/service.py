"""Graph over a small index, for tests of the HTTP service without Ray."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster.answers import Answer, Question, SearchResult, Sentence
from cluster.records import Author, Citation
from serve.answer.write_answer import WrittenAnswer
from serve.contracts.answer_events import Event
from serve.contracts.readiness import Readiness
from serve.contracts.request import Request
from serve.support.attribute_sentences import Stance
from tests.serve.small_graph import make_answerer
from tests.small_index import citation

CORPUS = [
    citation(
        1,
        "Metformin activates AMPK in the liver of diabetic mice.",
        "Metformin and AMPK",
        authors=(Author("Doe", "Jo", "J"),),
        pages="11-9",
    ),
    citation(2, "Warfarin inhibits VKORC1."),
    citation(3, "Imatinib inhibits BCR-ABL in chronic myeloid leukaemia."),
]


DISPUTED = [*CORPUS, citation(4, "Metformin does not activate AMPK in the liver of diabetic mice.")]


def unsure_of(written: WrittenAnswer) -> WrittenAnswer:
    return replace(written, verdict="not_enough_evidence", confidence=0.25)


def own_words(written: WrittenAnswer) -> WrittenAnswer:
    """Append an unsupported sentence."""
    added = Sentence("It cures everything.", (), 0.0, unsupported=True)
    return replace(written, ideal=(*written.ideal, added))


def dispute(written: WrittenAnswer) -> WrittenAnswer:
    """Let PMID 4 contradict the answer and all others support it."""
    sides: dict[str, Stance] = {
        id_: "contradict" if id_.startswith("4:") else "support" for id_ in written.stances
    }
    return replace(written, verdict="mixed", stances=sides)


class SmallService:
    """Graph over the shared index of `citations`, or over a new index at `index`.

    `state` is the state of shard 1; `options` are those of `make_answerer`.
    """

    def __init__(
        self,
        index: Path | None = None,
        *,
        state: str = "ready",
        citations: Sequence[Citation] = CORPUS,
        **options: Any,
    ) -> None:
        self._answerer = make_answerer(index, citations, **options)
        # Subclasses may override the methods of QuestionAnswerer.
        self.answerer: Any = self
        self.state = state
        self.models = {"llm": "small" if options.get("writer") else "none"}
        self.stores: dict[str, str] = {}
        self.asked: list[Question] = []

    async def search(self, request: Request) -> SearchResult:
        self.asked.append(request.question)
        return await self._answerer.search(request)

    async def answer(self, request: Request) -> Answer:
        self.asked.append(request.question)
        return await self._answerer.answer(request)

    def answer_events(self, request: Request) -> AsyncGenerator[Event, None]:
        self.asked.append(request.question)
        return self._answerer.answer_events(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answerer, name)

    def loading(self) -> list[str]:
        return [] if self.state == "ready" else ["shard-0001"]

    async def metrics(self) -> bytes:
        return b"# no figures\n"

    async def readiness(self) -> Readiness:
        ready = self.state == "ready"
        return Readiness(
            ready=ready,
            index_version="v000001",
            last_source="n1.xml",
            index_date="2026-11-21",
            coverage="2/2" if ready else "1/2",
            citations=len(CORPUS),
            models={"encoder": "test", **self.models},
            stages={"encoder": "ready", "shard-0001": self.state},
            versions={"shard-0000": "v000001", "shard-0001": "v000001"},
            refused={},
            stores=self.stores,
        )
