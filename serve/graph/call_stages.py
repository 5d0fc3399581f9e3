"""The stages as Ray Serve deployments, called by handle.

A handle is a `ray.serve.handle.DeploymentHandle`; nothing here needs to import Ray.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

import numpy as np

from cluster.index.read_shard import Candidates, Fetched, ShardQuery, Statistics
from cluster.index.vectors import Vectors
from cluster.records import Citation, Entity, Evidence, Passage, Question
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.write_answer import WrittenAnswer
from serve.batches.jobs import BatchError, Job
from serve.graph.versions.read_version import FromVersion
from serve.graph.watch_stages import StageLostError
from serve.llm.language_model import Message, Say

Handle = Any
TURN_DEADLINE_S = 10.0
BATCHES_DEADLINE_S = 20.0
log = logging.getLogger("citeray")


async def call(handle: Handle, method: str, *arguments: Any) -> Any:
    """Call a deployment; cancelling this coroutine cancels the request downstream too."""
    response = getattr(handle, method).remote(*arguments)
    try:
        return await response
    except asyncio.CancelledError:
        response.cancel()
        raise


def direct(handle: Handle) -> Handle:
    """The handle with its calls sent to a replica itself, not through Ray's objects.

    Serve's replicas listen for both, behind the same token. It takes 4 ms less a call.
    """
    return handle.options(_by_reference=False)


async def until_ready(handle: Handle) -> None:
    """Returns once a deployment says that it is ready, however long that takes."""
    while True:
        with suppress(Exception):
            await call(handle, "ready")
            return
        await asyncio.sleep(0.2)


async def stream(handle: Handle, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
    """What a deployment's generator yields; who stops listening cancels it downstream too."""
    response = getattr(handle.options(stream=True), method).remote(*arguments)
    try:
        async for part in response:
            yield part
    finally:
        response.cancel()


class HandleShard:
    """One shard's deployment as a `ShardStage`."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    async def statistics(self, terms: list[str], over: str) -> Statistics:
        counts: Statistics = await call(self.handle, "statistics", terms, over)
        return counts

    async def search(self, query: ShardQuery) -> FromVersion[Candidates]:
        candidates: FromVersion[Candidates] = await call(self.handle, "search", query)
        return candidates

    async def fetch(
        self, pmids: Sequence[int], vector: Vectors | None
    ) -> FromVersion[list[Fetched]]:
        fetched: FromVersion[list[Fetched]] = await call(self.handle, "fetch", pmids, vector)
        return fetched

    async def citation(self, pmid: int) -> Citation | None:
        citation: Citation | None = await call(self.handle, "citation", pmid)
        return citation


class HandleStages:
    """The deployments as `Stages`."""

    def __init__(
        self,
        stages: Mapping[str, Handle],
        shards: Sequence[Handle],
    ) -> None:
        self._expander, self._encoder = direct(stages["expander"]), direct(stages["encoder"])
        self._reranker, self._writer = stages["reranker"], stages["writer"]
        self._pubmed = stages["pubmed"]
        self.shards = [HandleShard(direct(handle)) for handle in shards]

    async def entities(self, text: str) -> list[Entity]:
        entities: list[Entity] = await call(self._expander, "entities", text)
        return entities

    async def encode(self, text: str) -> Vectors:
        vector: Vectors = await call(self._encoder, "encode", text)
        return vector

    async def embed(self, texts: Sequence[str]) -> Vectors:
        vectors: Vectors = await call(self._encoder, "encode_passages", list(texts))
        return vectors

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        """See `ChatModel.chat`; the writer's replicas are those that speak with the model."""
        reply: str = await call(self._writer, "chat", list(messages), options)
        return reply

    async def find_online(self, query: str, limit: int) -> list[int]:
        pmids: list[int] = await call(self._pubmed, "find_online", query, limit)
        return pmids

    async def fetch_online(self, pmids: Sequence[int]) -> list[Citation]:
        citations: list[Citation] = await call(self._pubmed, "fetch_online", list(pmids))
        return citations

    async def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        arguments = (question, tuple(evidence), sentences)
        chosen: list[Passage] = await call(self._encoder, "snippets", *arguments)
        return chosen

    async def rerank(self, question: str, texts: Sequence[str]) -> np.ndarray:
        scores: np.ndarray = await call(self._reranker, "rerank", question, list(texts))
        return scores

    async def answering(self, question: str, passages: Sequence[str]) -> np.ndarray:
        scores: np.ndarray = await call(self._writer, "answering", question, list(passages))
        return scores

    async def write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings,
        say: Say | None = None,
    ) -> WrittenAnswer:
        arguments = (question, tuple(evidence), style)
        if say is None:
            written: WrittenAnswer = await call(self._writer, "write", *arguments)
            return written
        async with aclosing(stream(self._writer, "write_aloud", *arguments)) as parts:
            async for part in parts:
                if isinstance(part, str):
                    say(part)
                else:
                    written = part
        return written

    def followers(self) -> dict[str, Handle]:
        """The deployments that read the index, by stage name."""
        shards = {f"shard-{n:04d}": s.handle for n, s in enumerate(self.shards)}
        return {"expander": self._expander, **shards, "writer": self._writer}

    def handles(self) -> dict[str, Handle]:
        """Every deployment by the stage name that readiness shows."""
        others = {"encoder": self._encoder, "reranker": self._reranker, "pubmed": self._pubmed}
        return {**self.followers(), **others}


class HandleBatches:
    """The graph's batches, wherever they are worked on.

    Each call raises BatchError, or StageLostError while their process is down.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return await asyncio.wait_for(
                call(self._handle, method, *arguments), BATCHES_DEADLINE_S
            )
        except BatchError:
            raise
        except Exception as error:
            # Ray keeps there what the deployment's own code raised: a fault, not a loss.
            if hasattr(error, "cause"):
                raise
            log.warning("batches: %s got no reply: %r", method, error)
            raise StageLostError(
                "the batches' process does not answer; no batch is lost, try again in a moment"
            ) from error

    async def add(self, job: Job, questions: Sequence[Question]) -> dict[str, Any]:
        added: dict[str, Any] = await self._call("add", job, tuple(questions))
        return added

    async def list(self, owner: str) -> list[dict[str, Any]]:
        jobs: list[dict[str, Any]] = await self._call("list", owner)
        return jobs

    async def status(self, job_id: str, owner: str) -> dict[str, Any]:
        status: dict[str, Any] = await self._call("status", job_id, owner)
        return status

    async def cancel(self, job_id: str, owner: str) -> dict[str, Any]:
        status: dict[str, Any] = await self._call("cancel", job_id, owner)
        return status

    async def run(self, job_id: str, owner: str) -> bytes:
        run: bytes = await self._call("run", job_id, owner)
        return run


class HandleTurns:
    """The graph's lease as `Turns`, for a thread of a replica: its calls block."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def take(self, holder: str) -> bool:
        taken: bool = self._handle.take.remote(holder).result(timeout_s=TURN_DEADLINE_S)
        return taken

    def give_back(self, holder: str) -> None:
        self._handle.give_back.remote(holder).result(timeout_s=TURN_DEADLINE_S)
