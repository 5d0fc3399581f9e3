"""Stages for one question: each call has a deadline, and lost stages are recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cluster.index.terms.collection import Statistics
from cluster.index.vectors import QuestionVectors, Vectors
from cluster.records import Citation, Entity
from cluster.settings.settings import ServeSettings
from serve.graph.stages import Stages
from serve.graph.watch_stages import StageWatch
from serve.llm.model_roles import Role
from serve.llm.watched_model import ModelLimits, WatchedModel
from serve.question.understand_question import Understood

OWN_COUNTS = "terms weighed by each shard's own counts"


class WatchedStages:
    """Stages that return None or an empty result on failure, and record the loss in the watch.

    `quoted` is the maximum number of characters of passages in a prompt.
    """

    def __init__(
        self, stages: Stages, settings: ServeSettings, watch: StageWatch, quoted: int
    ) -> None:
        self.stages = stages
        self.settings = settings
        self.watch = watch
        self._encoded: dict[str, asyncio.Future[QuestionVectors | None]] = {}
        self._limits = ModelLimits(settings.llm.deadline_s, quoted)
        self.model = self.model_of("writer")

    def model_of(self, role: Role, turn: int = 0) -> WatchedModel:
        """Return the language model of a role; see `ModelRoles.of`."""
        return WatchedModel(self.stages.model(role, turn), self.watch, self._limits)

    async def understand(self, text: str, over: str, named: bool) -> Understood | None:
        """See `Stages.understand`; None if the expander fails or times out."""
        work = self.stages.understand(text, over, named)
        deadline = self.settings.expander.deadline_s
        return await self.watch.run("expand", work, deadline, "question not expanded")

    async def statistics(self, terms: Sequence[str], over: str) -> Statistics | None:
        """See `Stages.statistics`; None if the expander fails or times out."""
        work = self.stages.statistics(terms, over)
        deadline = self.settings.expander.deadline_s
        return await self.watch.run("statistics", work, deadline, OWN_COUNTS)

    async def entities(self, text: str, loss: str = "question not expanded") -> list[Entity]:
        """Return the entities in `text`; empty if the expander fails or times out."""
        deadline = self.settings.expander.deadline_s
        return await self.watch.run("expand", self.stages.entities(text), deadline, loss) or []

    async def encode(self, text: str, loss: str = "BM25 only") -> QuestionVectors | None:
        """Return the vectors of a question and of its tokens; each text is encoded once."""
        if text not in self._encoded:
            deadline = self.settings.encoder.deadline_s
            work = self.watch.run("encode", self.stages.encode(text), deadline, loss)
            self._encoded[text] = asyncio.ensure_future(work)
        return await self._encoded[text]

    async def embed(self, texts: Sequence[str], loss: str) -> Vectors | None:
        """Return the vectors (n, d) of passages; None if the encoder fails or times out."""
        deadline = self.settings.encoder.deadline_s
        return await self.watch.run("embed", self.stages.embed(texts), deadline, loss)

    async def rerank(self, question: str, texts: Sequence[str]) -> npt.NDArray[np.float32] | None:
        """Return scores (n,); None if the reranker fails, times out or the budget runs out."""
        work = self.stages.rerank(question, texts)
        deadline = self.settings.reranker.deadline_s
        loss = "first-stage order kept"
        return await self.watch.run("rerank", work, deadline, loss, spare=True)

    async def answering(
        self, question: str, passages: Sequence[str]
    ) -> npt.NDArray[np.float32] | None:
        """Return the reader's scores (n,), 0 to 1; None in the same cases as `rerank`."""
        work = self.stages.answering(question, passages)
        deadline = self.settings.reranker.deadline_s
        return await self.watch.run("read", work, deadline, "ranked without the reader", spare=True)

    async def fetch_online(self, pmids: Sequence[int]) -> list[Citation]:
        """Return the records of `pmids` that PubMed has; empty if it fails or times out."""
        work = self.stages.fetch_online(pmids)
        deadline = self.settings.request_deadline_s
        return await self.watch.run("pubmed", work, deadline, "articles not fetched") or []
