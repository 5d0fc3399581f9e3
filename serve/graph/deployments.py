"""Deployments that need Ray Serve for batching, streaming or background work.

The other deployments are in `following_stage` and `version_lease`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import numpy as np
from ray import serve as ray_serve
from ray.serve.handle import DeploymentHandle

from cluster.answers import Evidence, Question, SearchResult
from cluster.index.manifest import Manifest
from cluster.index.vectors import Vectors
from cluster.models.embedded import QuestionVectors
from cluster.records import Entity, Passage
from cluster.settings.presets import load_system, name_systems
from cluster.settings.settings import Settings
from serve.answer.write_answer import AnswerWriter
from serve.batches.jobs import Job
from serve.batches.serve_jobs import ServedBatches
from serve.contracts.backend import HandleBackend, IndexFacts
from serve.contracts.request import Request
from serve.formats.bioasq import MAX_DOCUMENTS
from serve.graph.call_handles import HandleLease, wait_until_ready
from serve.graph.follow_versions import StageVersion, follow_vocabulary
from serve.graph.load_stages import (
    load_encoder,
    load_late_interaction,
    load_reranker,
    load_writer_parts,
)
from serve.llm.chat_form import Message
from serve.llm.model_roles import find_models
from serve.llm_app import HandleChatModel, served_model
from serve.pipeline.answer_question import QuestionAnswerer
from serve.search.choose_snippets import choose_snippets

T = TypeVar("T")


async def in_thread(pool: Executor, work: Callable[..., T], *arguments: Any) -> T:
    """Run `work` in a thread of `pool`; it can be cancelled only before a thread picks it up."""
    return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)


class EncoderDeployment:
    """Encodes questions; those that arrive together form one batch."""

    def __init__(self, settings: Settings, manifest: Manifest) -> None:
        self._encoder = load_encoder(settings, manifest)
        self._late = load_late_interaction(settings, self._encoder)
        # Use few threads: torch keeps a thread pool, and its memory, for each calling thread.
        self._queries, self._passages = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._batched.set_max_batch_size(settings.serve.encoder.batch)

    @ray_serve.batch(max_batch_size=32, batch_wait_timeout_s=0.002)
    async def _batched(self, texts: list[str]) -> list[QuestionVectors]:
        return await in_thread(self._queries, self._encoder.encode_queries, texts)

    async def encode(self, text: str) -> QuestionVectors:
        """Return the vectors of a question; questions that arrive together are batched."""
        vectors: QuestionVectors = await self._batched(text)
        return vectors

    async def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors (n, d) of passages."""
        return await in_thread(self._passages, self._encoder.encode, texts)

    async def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        """Return late-interaction scores (n,) of passages without stored token vectors."""
        return await in_thread(self._passages, self._late.score, question, texts)

    async def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        """Return the best snippets of the evidence, of up to `sentences` sentences each."""
        choose = partial(choose_snippets, window=sentences)
        return await in_thread(self._passages, choose, question, evidence, self._encoder.encode)

    def ready(self) -> str:
        """Return "ready" once the model is loaded."""
        return "ready"


class RerankerDeployment:
    """Reranks candidates; requests that arrive together form one batch."""

    def __init__(self, settings: Settings) -> None:
        self._reranker = load_reranker(settings)
        self._thread = ThreadPoolExecutor(1)
        self._batched.set_max_batch_size(settings.serve.reranker.batch)

    @ray_serve.batch(max_batch_size=8, batch_wait_timeout_s=0.002)
    async def _batched(self, requests: list[tuple[str, list[str]]]) -> list[np.ndarray]:
        pairs = [(question, text) for question, texts in requests for text in texts]
        scores = await in_thread(self._thread, self._reranker.score_pairs, pairs)
        ends = np.cumsum([len(texts) for _, texts in requests])
        return [
            scores[end - len(texts) : end] for end, (_, texts) in zip(ends, requests, strict=True)
        ]

    async def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        """Return scores (n,), higher is better; requests that arrive together are batched."""
        scores: np.ndarray = await self._batched((question, list(texts)))
        return scores

    def ready(self) -> str:
        """Return "ready" once the model is loaded."""
        return "ready"


class WriterDeployment(AnswerWriter):
    """Writer stage that switches to the vocabulary of each new index version by itself."""

    def __init__(
        self,
        settings: Settings,
        manifest: Manifest,
        lease: DeploymentHandle,
        encoder: DeploymentHandle,
    ) -> None:
        models = find_models(settings, served_model)
        deadline_s = settings.serve.encoder.deadline_s

        def encode(texts: Sequence[str]) -> Vectors:
            # This call may block, because the writer compares sentences in worker threads.
            response = encoder.encode_passages.remote(list(texts))
            vectors: Vectors = response.result(timeout_s=deadline_s)
            return vectors

        def recognise(text: str) -> list[Entity]:
            return self._follower.current.value.entities(text)

        self._follower = follow_vocabulary(settings, manifest)
        self._follower.follow(settings.serve.follow_s, HandleLease(lease))
        super().__init__(**load_writer_parts(settings, encode, recognise, models))

    def version(self) -> StageVersion:
        """Return the vocabulary version in use, and why a newer one is refused."""
        return self._follower.state()

    async def ready(self) -> str:
        """Return "ready" once each model served here has generated a token."""
        greeting: Message = {"role": "user", "content": "Hello"}
        for model in self.models.every():
            if isinstance(model, HandleChatModel):
                await model.chat([greeting], max_tokens=1, temperature=0.0)
        return "ready"


class BatchesDeployment(ServedBatches):
    """Processes batches outside the gateway, so that they do not delay interactive questions."""

    # A coroutine, which Serve awaits on the event loop that handles requests.
    async def __init__(  # type: ignore[misc]
        self,
        settings: Settings,
        manifest: Manifest,
        stages: Mapping[str, DeploymentHandle],
        shards: Sequence[DeploymentHandle],
    ) -> None:
        name_systems(settings.serve.systems)
        backend = HandleBackend(IndexFacts.of(manifest, settings), stages, shards)
        answerer = QuestionAnswerer(backend, settings.serve, settings.llm.evidence_characters)

        async def ask(question: Question, job: Job) -> SearchResult:
            asked = Request(question, load_system(job.system), MAX_DOCUMENTS, True, job.filters)
            return await (answerer.answer(asked) if job.answers else answerer.search(asked))

        async def ready() -> None:
            # Wait for all stages, because answers are degraded while a stage is loading.
            await asyncio.gather(*map(wait_until_ready, backend.handles.values()))

        super().__init__(settings.serve.batches, ask, ready)
        self.begin()
