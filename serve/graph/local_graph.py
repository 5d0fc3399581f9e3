"""The question's path in this process: no Ray, no HTTP. For searches, batches and tests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np

from cluster.errors import LLMError
from cluster.index.read_shard import Candidates, Fetched, ShardQuery, Statistics
from cluster.index.vectors import Vectors
from cluster.records import Citation, Entity, Evidence, Passage, Question
from cluster.settings.answer_settings import AnswerSettings
from cluster.settings.settings import Settings
from serve.answer.write_answer import WrittenAnswer
from serve.answer_question import QuestionAnswerer
from serve.graph.load_stages import (
    load_encoder,
    load_recogniser,
    load_reranker,
    load_shard,
    load_writer,
    open_manifest,
)
from serve.graph.stages import IndexFacts
from serve.graph.versions.read_version import FromVersion, ShardVersion
from serve.llm.language_model import NO_MODEL, ChatModel, Message, Say
from serve.search.choose_snippets import choose_snippets
from serve.search.pubmed.search_online import Online


class LocalShard:
    """A shard read in this process, its searches in threads."""

    def __init__(self, shard: ShardVersion) -> None:
        self._shard = shard

    async def statistics(self, terms: list[str], over: str) -> Statistics:
        return await asyncio.to_thread(self._shard.statistics, terms, over)

    async def search(self, query: ShardQuery) -> FromVersion[Candidates]:
        return await asyncio.to_thread(self._shard.search, query)

    async def fetch(
        self, pmids: Sequence[int], vector: Vectors | None
    ) -> FromVersion[list[Fetched]]:
        return await asyncio.to_thread(self._shard.fetch, pmids, vector)

    async def citation(self, pmid: int) -> Citation | None:
        return await asyncio.to_thread(self._shard.citation, pmid)


class LocalStages:
    """Every stage loaded here; `model` None answers from the evidence alone."""

    def __init__(self, settings: Settings, model: ChatModel | None) -> None:
        manifest = open_manifest(settings)
        self.facts = IndexFacts.of(manifest, settings.index.bm25_k1, settings.index.bm25_b)
        self._recogniser = load_recogniser(settings, manifest)
        self._encoder = load_encoder(settings, manifest)
        self._reranker = load_reranker(settings, self._encoder)
        self._writer = load_writer(settings, self._encoder.encode, self._recogniser.entities, model)
        self._model = model
        self._online = Online(settings.entrez)
        self.shards = [
            LocalShard(ShardVersion(load_shard(settings, manifest, n), manifest))
            for n in range(len(manifest.shards))
        ]

    async def entities(self, text: str) -> list[Entity]:
        return await asyncio.to_thread(self._recogniser.entities, text)

    async def encode(self, text: str) -> Vectors:
        vectors: Vectors = await asyncio.to_thread(self._encoder.encode_queries, [text])
        return np.asarray(vectors[0], np.float32)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._encoder.encode, texts)

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        """See `ChatModel.chat`."""
        if self._model is None:
            raise LLMError(NO_MODEL)
        return await self._model.chat(messages, **options)

    async def find_online(self, query: str, limit: int) -> list[int]:
        return await self._online.find_online(query, limit)

    async def fetch_online(self, pmids: Sequence[int]) -> list[Citation]:
        return await self._online.fetch_online(pmids)

    async def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        encode = self._encoder.encode
        return await asyncio.to_thread(
            choose_snippets, question, evidence, encode, window=sentences
        )

    async def rerank(self, question: str, texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(self._reranker.score, question, texts)

    async def answering(self, question: str, passages: Sequence[str]) -> np.ndarray:
        return await self._writer.answering(question, passages)

    async def write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings,
        say: Say | None = None,
    ) -> WrittenAnswer:
        return await self._writer.write(question, evidence, style, say)


def local_answerer(settings: Settings, model: ChatModel | None = None) -> QuestionAnswerer:
    """The whole path in this process over the index of `settings`."""
    stages = LocalStages(settings, model)
    return QuestionAnswerer(stages, stages.facts, settings.serve, settings.llm.evidence_characters)
