"""Oracles that replace one stage with gold, to measure what a perfect stage would gain.

Each oracle wraps the graph's backend for one question. It exists only in this process, so that no
request to a running endpoint can carry gold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cluster.answers import Evidence
from cluster.errors import InputError
from cluster.index.layout import shard_of
from cluster.index.read_shard import Candidates, Fetched, Found, ShardQuery, join_candidates
from cluster.records import ABSTRACT, TITLE, Citation, Passage
from cluster.settings.search_settings import RerankSettings
from cluster.settings.system_settings import SystemSettings
from evaluation.bioasq.read_bioasq import Entry, Snippet, document_id
from serve.contracts.backend import Backend, BackendWrapper, shard_stage
from serve.pipeline.given_evidence import as_evidence
from serve.search.rank_hits import rerank_text
from serve.search.shard_stage import FromVersion

# Ratio of the score of gold to the best other score. It is above 1, so that gold never ties with
# another candidate, and equal in both branches, so that the others keep their order.
_ABOVE = 1.001


@dataclass(frozen=True, slots=True)
class Material:
    """The relevant PMIDs of a question, and its gold snippets in file order."""

    pmids: frozenset[int]
    snippets: tuple[Passage, ...]


def material(gold: Entry) -> Material:
    """Return the gold that the oracles use for a question.

    Raises InputError for a document whose address does not end in a PMID, and for a snippet without
    text.
    """
    snippets = tuple(_passage(snippet, gold.id) for snippet in gold.snippets)
    return Material(frozenset(_pmid(d, gold.id) for d in gold.documents), snippets)


def _pmid(document: str, question: str) -> int:
    name = document_id(document)
    if not name.isascii() or not name.isdigit():
        raise InputError(
            f"gold question {question}: document {document!r} does not end in a PMID, which the "
            "oracles need; fix its address"
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


class Oracle(BackendWrapper):
    """A backend for one question whose gold is known."""

    def __init__(self, backend: Backend, gold: Material) -> None:
        super().__init__(backend)
        self._gold = gold
        self._shards = [shard_stage(number) for number in range(self.facts.shards)]

    async def _held(self, pmid: int) -> Citation | None:
        stage = self._shards[shard_of(pmid, len(self._shards))]
        citation: Citation | None = await self.backend.call(stage, "citation", pmid)
        return citation


class GoldRetrieval(Oracle):
    """Each branch finds every gold document in the index and ranks it first.

    The other candidates keep their order. If one shard fails, the question fails, because the
    best score is taken over all shards.
    """

    _search: asyncio.Task[dict[str, FromVersion[Found]]] | None = None

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """Search all shards on the first "find", then serve each shard from that result."""
        if method != "find":
            return await super().call(stage, method, *arguments)
        # All shards get the same query. A timeout of one must not cancel the search of the others.
        if self._search is None:
            self._search = asyncio.create_task(self._find(*arguments))
        return (await asyncio.shield(self._search))[stage]

    async def _find(self, query: ShardQuery) -> dict[str, FromVersion[Found]]:
        asked = (self.backend.call(stage, "find", query) for stage in self._shards)
        parts: list[FromVersion[Found]] = await asyncio.gather(*asked)
        every = join_candidates([part.value.candidates for part in parts])
        dense = _top(every.dense) if query.vector is not None else 0.0
        bm25 = _top(every.bm25) if query.bm25 is not None else 0.0
        held: list[list[int]] = [[] for _ in self._shards]
        for pmid in sorted(self._gold.pmids):
            if await self._held(pmid) is not None:
                held[shard_of(pmid, len(held))].append(pmid)
        return {
            stage: replace(
                part,
                value=replace(
                    part.value, candidates=_promote(part.value.candidates, pmids, dense, bm25)
                ),
            )
            for stage, part, pmids in zip(self._shards, parts, held, strict=True)
        }


def _top(scores: npt.NDArray[np.float32]) -> float:
    greatest = float(scores.max(initial=0.0))
    return greatest * _ABOVE if greatest > 0 else 1.0


def _promote(part: Candidates, gold: Sequence[int], dense: float, bm25: float) -> Candidates:
    """Return `part` with these scores for the citations `gold`; 0 stands for an unused branch."""
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


class GoldReranking(Oracle):
    """The reranker scores relevant citations 1 and all others 0.

    Citations with the same title and passage are indistinguishable: all are relevant if one is.
    """

    def __init__(self, backend: Backend, gold: Material) -> None:
        super().__init__(backend, gold)
        self._relevant: set[str] = set()

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """Answer "score" from the gold, record the shards' replies, and pass on all other calls."""
        if method == "score":
            return self._score(*arguments)
        reply = await super().call(stage, method, *arguments)
        if method == "find":
            fetched = tuple(self._noted(reply.value.fetched))
            return replace(reply, value=replace(reply.value, fetched=fetched))
        if method == "fetch":
            return replace(reply, value=self._noted(reply.value))
        return reply

    def _noted(self, fetched: Sequence[Fetched]) -> list[Fetched]:
        """Remove the scores that come from stored token vectors, so that the reranker is called."""
        # Texts of the relevant citations, as the reranker receives them.
        held = (f for f in fetched if f.citation.pmid in self._gold.pmids)
        self._relevant |= set(map(rerank_text, held))
        return [replace(f, late=None, late_read=None) for f in fetched]

    def _score(self, _: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        relevant = np.asarray([text in self._relevant for text in texts], np.float32)
        # Ties keep the order of the first stage; with equal scores they would be ordered by PMID.
        return relevant + np.linspace(1e-3, 0, len(texts), dtype=np.float32)


class GoldEvidence(Oracle):
    """The writer and the selection of sentences get the gold snippets as their evidence."""

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """Replace the evidence of "snippets" and "write" with the gold snippets."""
        if method in ("snippets", "write"):
            question, _, last = arguments
            arguments = (question, await self.evidence(), last)
        return await super().call(stage, method, *arguments)

    async def evidence(self) -> list[Evidence]:
        """Return the gold snippets of citations in the index."""
        passages = self._gold.snippets
        found = [await self._held(pmid) for pmid in {passage.pmid for passage in passages}]
        return as_evidence(passages, {held.pmid: held for held in found if held is not None})


ORACLES: Mapping[str, type[Oracle]] = {
    "retrieve": GoldRetrieval,
    "rerank": GoldReranking,
    "evidence": GoldEvidence,
}


def rerank_only(system: SystemSettings) -> SystemSettings:
    """Return the system ranked only by the reranker; without one, all candidates are reranked."""
    depth = system.rerank.depth or min(1000, system.retrieve.dense + system.retrieve.bm25)
    alone = {"rerank": RerankSettings(depth=depth, weight=1.0), "refine": RerankSettings()}
    return system.model_copy(update=alone)
