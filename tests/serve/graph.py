"""The question's path over a small index with stand-in models, for tests without Ray."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cluster.index.manifest import Manifest
from cluster.index.read_shard import Candidates, ShardQuery, ShardReader
from cluster.records import Citation, Entity, Evidence, Passage, Question
from cluster.settings import ServeSettings, load_settings
from serve.answer_question import QuestionAnswerer
from serve.choose_snippets import choose_snippets
from serve.local_graph import LocalShard
from serve.read_version import FromVersion, ShardVersion
from serve.stages import IndexFacts
from serve.write_answer import AnswerWriter, WrittenAnswer
from tests.small_index import Encode, bag_of_words, make_index


class BrokenShard(LocalShard):
    async def search(self, query: ShardQuery) -> FromVersion[Candidates]:
        raise RuntimeError("this shard is gone")

    async def citation(self, pmid: int) -> Citation | None:
        raise RuntimeError("this shard is gone")


class SmallStages:
    """`broken` names stages that raise: expand, encode, rerank, write, or shard-0, shard-1."""

    def __init__(
        self,
        manifest: Manifest,
        shards: Sequence[ShardReader],
        broken: Sequence[str],
        encode: Encode = bag_of_words,
    ) -> None:
        self._encode = encode
        self._broken = broken
        self.shards = [
            (BrokenShard if f"shard-{n}" in broken else LocalShard)(ShardVersion(r, manifest))
            for n, r in enumerate(shards)
        ]
        self._writer = AnswerWriter(None, bag_of_words, None, lambda text: [])

    def _check(self, stage: str) -> None:
        if stage in self._broken:
            raise RuntimeError(f"{stage} is gone")

    async def entities(self, text: str) -> list[Entity]:
        self._check("expand")
        return []

    async def encode(self, text: str) -> np.ndarray:
        self._check("encode")
        return self._encode([text])[0]

    async def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        return choose_snippets(question, evidence, bag_of_words, window=sentences)

    async def rerank(self, question: str, texts: Sequence[str]) -> np.ndarray:
        self._check("rerank")
        vectors = bag_of_words([question, *texts])
        return np.asarray(vectors[1:] @ vectors[0], np.float32)

    async def write(self, question: Question, evidence: Sequence[Evidence]) -> WrittenAnswer:
        self._check("write")
        return await self._writer.write(question, evidence)


def make_answerer(
    index: Path,
    citations: Sequence[Citation],
    *,
    shards: int = 2,
    broken: Sequence[str] = (),
    serve: ServeSettings | None = None,
) -> QuestionAnswerer:
    manifest = make_index(index, citations, shards=shards)
    readers = [
        ShardReader(index, n, entry, ef_search=64, exact_below=10**9)
        for n, entry in enumerate(manifest.shards)
    ]
    stages = SmallStages(manifest, readers, broken)
    facts = IndexFacts.of(manifest, 0.9, 0.4)
    return QuestionAnswerer(stages, facts, serve or load_settings().serve)
