"""Run the pipeline in this process, without Ray or HTTP, for searches, batches and tests."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cluster.answers import Evidence
from cluster.index.vectors import QuestionVectors, Vectors
from cluster.records import Passage
from cluster.settings.settings import Settings
from serve.answer_question import QuestionAnswerer
from serve.graph.load_stages import (
    load_encoder,
    load_expander,
    load_late_interaction,
    load_reranker,
    load_shard,
    load_writer,
    open_manifest,
)
from serve.graph.stages import IndexFacts, Stages, shard_stage
from serve.graph.versions.read_version import ShardVersion
from serve.graph.writer_stage import WriterStage
from serve.llm.model_roles import NO_MODELS, ModelRoles
from serve.search.choose_snippets import choose_snippets
from serve.search.pubmed.search_online import Online

if TYPE_CHECKING:
    from serve.graph.load_stages import QueryEncoder
    from serve.search.rerank_passages import Reranker


class LocalBackend:
    """Local objects as a `Backend`; methods that are not coroutines run in a thread."""

    def __init__(self, **stages: Any) -> None:
        self.stages = stages

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """Await a coroutine method; run any other in a thread, which cannot be cancelled."""
        work = getattr(self.stages[stage], method)
        if inspect.iscoroutinefunction(work):
            return await work(*arguments)
        return await asyncio.to_thread(work, *arguments)

    def stream(self, stage: str, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
        """Return the stage's async generator."""
        parts: AsyncGenerator[Any, None] = getattr(self.stages[stage], method)(*arguments)
        return parts


class EncoderStage:
    """Local counterpart of `serve.graph.deployments.Encoder`, without batching."""

    def __init__(self, encoder: QueryEncoder, late: Reranker) -> None:
        self._encoder = encoder
        self._late = late

    def encode(self, text: str) -> QuestionVectors:
        """Return the vectors of a question."""
        return self._encoder.encode_queries([text])[0]

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors (n, d) of passages."""
        return self._encoder.encode(texts)

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return late-interaction scores (n,) of passages without stored token vectors."""
        return self._late.score(question, texts)

    def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        """Return snippets of up to `sentences` sentences each; see `choose_snippets`."""
        return choose_snippets(question, evidence, self._encoder.encode, window=sentences)


def local_stages(settings: Settings, models: ModelRoles = NO_MODELS) -> Stages:
    """Load every stage in this process; without `models`, answers are extracted from evidence."""
    manifest = open_manifest(settings)
    expander = load_expander(settings, manifest)
    encoder = load_encoder(settings, manifest)
    writer = load_writer(settings, encoder.encode, expander.entities, models.writer)
    others: dict[str, Any] = {
        shard_stage(n): ShardVersion(load_shard(settings, manifest, n), manifest)
        for n in range(len(manifest.shards))
    }
    if settings.reranker.is_stage:
        others["reranker"] = load_reranker(settings)
    backend = LocalBackend(
        expander=expander,
        encoder=EncoderStage(encoder, load_late_interaction(settings, encoder)),
        writer=WriterStage(writer, models),
        pubmed=Online(settings.entrez),
        **others,
    )
    return Stages(backend, IndexFacts.of(manifest, settings))


def local_answerer(settings: Settings, models: ModelRoles = NO_MODELS) -> QuestionAnswerer:
    """Load the whole pipeline in this process for the index of `settings`."""
    stages = local_stages(settings, models)
    return QuestionAnswerer(stages, settings.serve, settings.llm.evidence_characters)
