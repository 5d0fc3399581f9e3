"""Gold in place of one stage of the question's path: what a perfect stage would bring.

Each oracle is a decorator over `serve.graph.stages.Stages` for one question. It exists in this
process alone, so that no request to a running endpoint can carry gold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cluster.errors import InputError
from cluster.index.layout import shard_of
from cluster.index.read_shard import (
    Candidates,
    Fetched,
    ShardQuery,
    Statistics,
    join_candidates,
)
from cluster.index.vectors import Vectors
from cluster.records import (
    ABSTRACT,
    TITLE,
    Citation,
    Entity,
    Evidence,
    Passage,
    Question,
)
from cluster.settings.answer_settings import AnswerSettings
from cluster.settings.search_settings import RerankSettings
from cluster.settings.system_settings import SystemSettings
from evaluation.bioasq.read_bioasq import Entry, Snippet, document_id
from serve.answer.write_answer import WrittenAnswer
from serve.graph.stages import ShardStage, Stages
from serve.graph.versions.read_version import FromVersion
from serve.llm.language_model import Message, Say
from serve.question.given_evidence import as_evidence
from serve.search.rank_hits import rerank_text

# Above every other score, so that no tie goes to the lower PMID; the same in both branches,
# so that the others keep their order.
_ABOVE = 1.001


@dataclass(frozen=True, slots=True)
class Material:
    """The relevant citations of a question, and its gold snippets in the gold file's order."""

    pmids: frozenset[int]
    snippets: tuple[Passage, ...]


def material(gold: Entry) -> Material:
    """What the oracles know of a question.

    Raises InputError for a document whose address does not end in a PMID and for a snippet
    without text.
    """
    snippets = tuple(_passage(snippet, gold.id) for snippet in gold.snippets)
    return Material(frozenset(_pmid(d, gold.id) for d in gold.documents), snippets)


def _pmid(document: str, question: str) -> int:
    name = document_id(document)
    if not name.isascii() or not name.isdigit():
        raise InputError(
            f"gold question {question}: document {document!r} does not end in a PMID, which the "
            "oracles need; mend its address"
        )
    return int(name)


def _passage(snippet: Snippet, question: str) -> Passage:
    if not snippet.text:
        raise InputError(
            f"gold question {question}: a snippet of {snippet.document} has no text, which the "
            "oracles need; add it"
        )
    section = TITLE if snippet.begin_section == TITLE else ABSTRACT
    pmid = _pmid(snippet.document, question)
    return Passage(pmid, section, snippet.begin, snippet.end, snippet.text)


class _Shard:
    def __init__(self, shard: ShardStage) -> None:
        self._shard = shard

    async def statistics(self, terms: list[str], over: str) -> Statistics:
        return await self._shard.statistics(terms, over)

    async def search(self, query: ShardQuery) -> FromVersion[Candidates]:
        return await self._shard.search(query)

    async def fetch(
        self, pmids: Sequence[int], vector: Vectors | None
    ) -> FromVersion[list[Fetched]]:
        return await self._shard.fetch(pmids, vector)

    async def citation(self, pmid: int) -> Citation | None:
        return await self._shard.citation(pmid)


class _Stages:
    def __init__(self, stages: Stages, gold: Material) -> None:
        self._stages = stages
        self._gold = gold
        self.shards: Sequence[ShardStage] = stages.shards

    async def entities(self, text: str) -> list[Entity]:
        return await self._stages.entities(text)

    async def encode(self, text: str) -> Vectors:
        return await self._stages.encode(text)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await self._stages.embed(texts)

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        return await self._stages.chat(messages, **options)

    async def find_online(self, query: str, limit: int) -> list[int]:
        return await self._stages.find_online(query, limit)

    async def fetch_online(self, pmids: Sequence[int]) -> list[Citation]:
        return await self._stages.fetch_online(pmids)

    async def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        return await self._stages.snippets(question, evidence, sentences)

    async def rerank(self, question: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return await self._stages.rerank(question, texts)

    async def answering(self, question: str, passages: Sequence[str]) -> npt.NDArray[np.float32]:
        return await self._stages.answering(question, passages)

    async def write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings,
        say: Say | None = None,
    ) -> WrittenAnswer:
        return await self._stages.write(question, evidence, style, say)

    async def _citation(self, pmid: int) -> Citation | None:
        shards = self._stages.shards
        return await shards[shard_of(pmid, len(shards))].citation(pmid)


class GoldRetrieval(_Stages):
    """Every gold document that the index holds is found by each branch, ahead of all others.

    The other candidates keep their order. A lost shard loses the question, since the best
    score is that of all shards.
    """

    def __init__(self, stages: Stages, gold: Material) -> None:
        super().__init__(stages, gold)
        self.shards = [_GoldShard(s, n, self) for n, s in enumerate(stages.shards)]
        self._search: asyncio.Task[list[FromVersion[Candidates]]] | None = None

    async def candidates(self, query: ShardQuery) -> list[FromVersion[Candidates]]:
        """The candidates of each shard; all shards ask for them with the same query."""
        if self._search is None:
            self._search = asyncio.create_task(self._find(query))
        # A caller that is late must not take the search away from the others.
        return await asyncio.shield(self._search)

    async def _find(self, query: ShardQuery) -> list[FromVersion[Candidates]]:
        shards = self._stages.shards
        parts = await asyncio.gather(*(shard.search(query) for shard in shards))
        every = join_candidates([part.value for part in parts])
        dense = _top(every.dense) if query.vector is not None else 0.0
        bm25 = _top(every.bm25) if query.bm25 is not None else 0.0
        held: list[list[int]] = [[] for _ in shards]
        for pmid in sorted(self._gold.pmids):
            if await self._citation(pmid) is not None:
                held[shard_of(pmid, len(shards))].append(pmid)
        return [
            replace(part, value=_promote(part.value, pmids, dense, bm25))
            for part, pmids in zip(parts, held, strict=True)
        ]


class _GoldShard(_Shard):
    def __init__(self, shard: ShardStage, number: int, retrieval: GoldRetrieval) -> None:
        super().__init__(shard)
        self._number = number
        self._retrieval = retrieval

    async def search(self, query: ShardQuery) -> FromVersion[Candidates]:
        return (await self._retrieval.candidates(query))[self._number]


def _top(scores: npt.NDArray[np.float32]) -> float:
    greatest = float(scores.max(initial=0.0))
    return greatest * _ABOVE if greatest > 0 else 1.0


def _promote(part: Candidates, gold: Sequence[int], dense: float, bm25: float) -> Candidates:
    """`part` with the citations `gold` at these scores; 0 is that of a branch left out."""
    pmids = np.asarray(gold, np.int64)
    rest = ~np.isin(part.pmids, pmids)

    def column(values: npt.NDArray, top: float) -> npt.NDArray:
        return np.concatenate([values[rest], np.full(len(pmids), top, values.dtype)])

    return Candidates(
        np.concatenate([part.pmids[rest], pmids]),
        column(part.dense, dense),
        column(part.bm25, bm25),
        column(part.found_dense, dense > 0),
        column(part.found_bm25, bm25 > 0),
    )


class GoldReranking(_Stages):
    """The reranker gives 1 to the relevant and 0 to the others.

    Citations of one title and one passage cannot be told apart: all are relevant if one is.
    """

    def __init__(self, stages: Stages, gold: Material) -> None:
        super().__init__(stages, gold)
        self.shards = [_NotingShard(shard, self) for shard in stages.shards]
        self._relevant: set[str] = set()

    def note(self, fetched: Sequence[Fetched]) -> None:
        """Remembers what the reranker will read of the relevant ones."""
        self._relevant |= {rerank_text(f) for f in fetched if f.citation.pmid in self._gold.pmids}

    async def rerank(self, question: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        relevant = np.asarray([text in self._relevant for text in texts], np.float32)
        # Equals keep the order of the first stage, which a plain 0 would give to the PMIDs.
        return relevant + np.linspace(1e-3, 0, len(texts), dtype=np.float32)


class _NotingShard(_Shard):
    def __init__(self, shard: ShardStage, reranking: GoldReranking) -> None:
        super().__init__(shard)
        self._reranking = reranking

    async def fetch(
        self, pmids: Sequence[int], vector: Vectors | None
    ) -> FromVersion[list[Fetched]]:
        fetched = await super().fetch(pmids, vector)
        self._reranking.note(fetched.value)
        return fetched


class GoldEvidence(_Stages):
    """The gold snippets are the evidence, for the writer and for the choice of snippets."""

    async def _evidence(self) -> list[Evidence]:
        passages = self._gold.snippets
        found = [await self._citation(pmid) for pmid in {passage.pmid for passage in passages}]
        return as_evidence(passages, {held.pmid: held for held in found if held is not None})

    async def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        return await self._stages.snippets(question, await self._evidence(), sentences)

    async def write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings,
        say: Say | None = None,
    ) -> WrittenAnswer:
        return await self._stages.write(question, await self._evidence(), style, say)


ORACLES: Mapping[str, type[_Stages]] = {
    "retrieve": GoldRetrieval,
    "rerank": GoldReranking,
    "evidence": GoldEvidence,
}


def perfectly_reranked(system: SystemSettings) -> SystemSettings:
    """The system with the reranker's score alone, over all candidates if it had no reranker."""
    depth = system.rerank.depth or min(1000, system.retrieve.dense + system.retrieve.bm25)
    return system.model_copy(update={"rerank": RerankSettings(depth=depth, weight=1.0)})
