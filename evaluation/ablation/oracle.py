"""Gold in place of one stage of the question's path: what a perfect stage would bring.

Each oracle is a backend around that of the graph, for one question. It exists in this
process alone, so that no request to a running endpoint can carry gold.
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
from serve.graph.stages import Around, Backend, shard_stage
from serve.graph.versions.read_version import FromVersion
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


class Oracle(Around):
    """A backend of one question over `shards` shards that knows its gold."""

    def __init__(self, backend: Backend, gold: Material, shards: int) -> None:
        super().__init__(backend)
        self._gold = gold
        self._shards = [shard_stage(number) for number in range(shards)]

    async def _held(self, pmid: int) -> Citation | None:
        stage = self._shards[shard_of(pmid, len(self._shards))]
        citation: Citation | None = await self.backend.call(stage, "citation", pmid)
        return citation


class GoldRetrieval(Oracle):
    """Every gold document that the index holds is found by each branch, ahead of all others.

    The other candidates keep their order. A lost shard loses the question, since the best
    score is that of all shards.
    """

    _search: asyncio.Task[dict[str, FromVersion[Found]]] | None = None

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """Search all shards on the first "find", then answer each shard from that one result."""
        if method != "find":
            return await super().call(stage, method, *arguments)
        # All shards are asked the same. One that is late must not take the search from the others.
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


class GoldReranking(Oracle):
    """The reranker gives 1 to the relevant and 0 to the others.

    Citations of one title and one passage cannot be told apart: all are relevant if one is.
    """

    def __init__(self, backend: Backend, gold: Material, shards: int) -> None:
        super().__init__(backend, gold, shards)
        self._relevant: set[str] = set()

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """Answer "score" from the gold; note what the shards bring, and pass all else on."""
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
        """Without scores by stored token vectors, so that the reranker is asked."""
        # What it will read of the relevant ones.
        held = (f for f in fetched if f.citation.pmid in self._gold.pmids)
        self._relevant |= set(map(rerank_text, held))
        return [replace(f, late=None, late_read=None) for f in fetched]

    def _score(self, _: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        relevant = np.asarray([text in self._relevant for text in texts], np.float32)
        # Equals keep the order of the first stage, which a plain 0 would give to the PMIDs.
        return relevant + np.linspace(1e-3, 0, len(texts), dtype=np.float32)


class GoldEvidence(Oracle):
    """The gold snippets are the evidence, for the writer and for the choice of sentences."""

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """Put the gold snippets in place of the evidence of "snippets" and "write"."""
        if method in ("snippets", "write"):
            question, _, last = arguments
            arguments = (question, await self.evidence(), last)
        return await super().call(stage, method, *arguments)

    async def evidence(self) -> list[Evidence]:
        """The gold snippets of citations that the index holds."""
        passages = self._gold.snippets
        found = [await self._held(pmid) for pmid in {passage.pmid for passage in passages}]
        return as_evidence(passages, {held.pmid: held for held in found if held is not None})


ORACLES: Mapping[str, type[Oracle]] = {
    "retrieve": GoldRetrieval,
    "rerank": GoldReranking,
    "evidence": GoldEvidence,
}


def perfectly_reranked(system: SystemSettings) -> SystemSettings:
    """The system with the reranker's score alone, over all candidates if it had no reranker."""
    depth = system.rerank.depth or min(1000, system.retrieve.dense + system.retrieve.bm25)
    alone = {"rerank": RerankSettings(depth=depth, weight=1.0), "refine": RerankSettings()}
    return system.model_copy(update=alone)
