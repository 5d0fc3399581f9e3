"""What the question's path asks of its stages, wherever they run.

`serve/graph/local_graph.py` answers from this process, `serve/app.py` from Ray Serve
deployments; the path itself knows neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cluster.index.manifest import Manifest
from cluster.index.read_shard import Candidates, Fetched, ShardQuery, Statistics
from cluster.index.vectors import Vectors
from cluster.records import Citation, Entity, Evidence, Passage, Question
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.write_answer import WrittenAnswer
from serve.graph.versions.read_version import FromVersion
from serve.llm.language_model import ChatModel, Say
from serve.search.pubmed.search_online import OnlineStage


class ShardStage(Protocol):
    async def statistics(self, terms: list[str], over: str) -> Statistics: ...
    async def search(self, query: ShardQuery) -> FromVersion[Candidates]: ...
    async def fetch(
        self, pmids: Sequence[int], vector: Vectors | None
    ) -> FromVersion[list[Fetched]]: ...
    async def citation(self, pmid: int) -> Citation | None: ...


class Stages(ChatModel, OnlineStage, Protocol):
    """`shards` has one stage for each shard of the manifest, in order.

    The language model (`chat`) raises LLMError and PubMed online PubMedError where there is
    none; both are for the presets that ask them.
    """

    @property
    def shards(self) -> Sequence[ShardStage]: ...
    async def entities(self, text: str) -> list[Entity]: ...
    async def encode(self, text: str) -> Vectors:
        """The vector (d,) of a question."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors (n, d) of passages."""
        ...

    async def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]: ...
    async def rerank(self, question: str, texts: Sequence[str]) -> npt.NDArray[np.float32]: ...
    async def answering(self, question: str, passages: Sequence[str]) -> npt.NDArray[np.float32]:
        """How far each passage answers the question, 0 to 1, by the reader."""
        ...

    async def write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings,
        say: Say | None = None,
    ) -> WrittenAnswer: ...


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What holds for every version that a graph moves to: its shards, and BM25's constants."""

    shards: int
    k1: float
    b: float

    @classmethod
    def of(cls, manifest: Manifest, k1: float, b: float) -> IndexFacts:
        return cls(len(manifest.shards), k1, b)
