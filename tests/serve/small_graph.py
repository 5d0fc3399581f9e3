"""The question's path over a small index with stand-in models, for tests without Ray."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cluster.errors import LLMError
from cluster.index.manifest import Manifest
from cluster.index.read_shard import Candidates, Fetched, ShardQuery, ShardReader
from cluster.index.vectors import Vectors
from cluster.records import Citation, Entity, Evidence, Passage, Question
from cluster.settings.answer_settings import AnswerSettings
from cluster.settings.settings import ServeSettings, load_settings
from serve.answer.write_answer import AnswerWriter, WrittenAnswer
from serve.answer_question import QuestionAnswerer
from serve.graph.local_graph import LocalShard
from serve.graph.stages import IndexFacts
from serve.graph.versions.read_version import FromVersion, ShardVersion
from serve.llm.language_model import NO_MODEL, ChatModel, Message, Say
from serve.search.choose_snippets import choose_snippets
from serve.search.pubmed.search_online import OnlineStage
from tests.serve.answering import WordReader
from tests.small_index import Encode, bag_of_words, make_index

Decide = Callable[[WrittenAnswer], WrittenAnswer]


def as_written(answer: WrittenAnswer) -> WrittenAnswer:
    return answer


class BrokenShard(LocalShard):
    async def search(self, query: ShardQuery) -> FromVersion[Candidates]:
        raise RuntimeError("this shard is gone")

    async def fetch(
        self, pmids: Sequence[int], vector: Vectors | None
    ) -> FromVersion[list[Fetched]]:
        raise RuntimeError("this shard is gone")

    async def citation(self, pmid: int) -> Citation | None:
        raise RuntimeError("this shard is gone")


class SmallStages:
    """`broken` names stages that raise: expand, encode, embed, rerank, read, write, or shard-0.

    `decide` may change what the writer decided.
    """

    def __init__(
        self,
        manifest: Manifest,
        shards: Sequence[ShardReader],
        broken: Sequence[str],
        encode: Encode = bag_of_words,
        model: ChatModel | None = None,
        online: OnlineStage | None = None,
        names: Sequence[str] = (),
        writer: ChatModel | None = None,
        decide: Decide = as_written,
    ) -> None:
        self._decide = decide
        self._names = names
        self._model = model
        self._online = online
        self._encode = encode
        self._broken = broken
        self.shards = [
            (BrokenShard if f"shard-{n}" in broken else LocalShard)(ShardVersion(r, manifest))
            for n, r in enumerate(shards)
        ]
        self._writer = AnswerWriter(writer, bag_of_words, None, lambda text: [], WordReader())

    def _check(self, stage: str) -> None:
        if stage in self._broken:
            raise RuntimeError(f"{stage} is gone")

    async def entities(self, text: str) -> list[Entity]:
        self._check("expand")
        begins = {name: text.find(name) for name in self._names}
        return [Entity(n, at, at + len(n), "", "") for n, at in begins.items() if at >= 0]

    async def encode(self, text: str) -> np.ndarray:
        self._check("encode")
        return self._encode([text])[0]

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        self._check("embed")
        return self._encode(texts)

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        if self._model is None:
            raise LLMError(NO_MODEL)
        return await self._model.chat(messages, **options)

    async def find_online(self, query: str, limit: int) -> list[int]:
        assert self._online is not None, "this test has no PubMed"
        return await self._online.find_online(query, limit)

    async def fetch_online(self, pmids: Sequence[int]) -> list[Citation]:
        assert self._online is not None, "this test has no PubMed"
        return await self._online.fetch_online(pmids)

    async def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        return choose_snippets(question, evidence, bag_of_words, window=sentences)

    async def rerank(self, question: str, texts: Sequence[str]) -> np.ndarray:
        self._check("rerank")
        vectors = bag_of_words([question, *texts])
        return np.asarray(vectors[1:] @ vectors[0], np.float32)

    async def answering(self, question: str, passages: Sequence[str]) -> np.ndarray:
        self._check("read")
        return await self._writer.answering(question, passages)

    async def write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings,
        say: Say | None = None,
    ) -> WrittenAnswer:
        self._check("write")
        written = await self._writer.write(question, evidence, style, say)
        return self._decide(written)


def stages_of(index: Path, citations: Sequence[Citation], shards: int = 2) -> SmallStages:
    """Stages over a new index of `citations`."""
    manifest = make_index(index, citations, shards=shards)
    return SmallStages(manifest, _readers(index, manifest), ())


def _readers(index: Path, manifest: Manifest) -> list[ShardReader]:
    return [
        ShardReader(index, n, entry, ef_search=64, exact_below=10**9)
        for n, entry in enumerate(manifest.shards)
    ]


def make_answerer(
    index: Path,
    citations: Sequence[Citation],
    *,
    shards: int = 2,
    broken: Sequence[str] = (),
    serve: ServeSettings | None = None,
    model: ChatModel | None = None,
    online: OnlineStage | None = None,
    names: Sequence[str] = (),
    writer: ChatModel | None = None,
    decide: Decide = as_written,
) -> QuestionAnswerer:
    manifest = make_index(index, citations, shards=shards)
    stages = SmallStages(
        manifest,
        _readers(index, manifest),
        broken,
        model=model,
        online=online,
        names=names,
        writer=writer,
        decide=decide,
    )
    facts = IndexFacts.of(manifest, 0.9, 0.4)
    return QuestionAnswerer(stages, facts, serve or load_settings().serve)
