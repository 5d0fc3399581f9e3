"""Hits of a search: fetched citations or single passages, with their scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cluster.answers import Evidence, RankedCitation
from cluster.index.bm25 import Bm25Query
from cluster.index.read_shard import Candidates, Fetched
from cluster.index.tokens.codec import Halves
from cluster.settings.search_settings import FusionSettings, RetrieverSettings
from cluster.text.analysis import Analyser
from serve.search.fuse_scores import Fused, fuse


def rerank_text(fetched: Fetched) -> str:
    """Return the text of a citation for a cross-encoder: its title and best passage."""
    best = fetched.best_passage()
    citation = fetched.citation
    parts = [citation.title] if citation.has_title else []
    if best is not None and fetched.passages[best].section == "abstract":
        parts.append(fetched.passages[best].text)
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Hit:
    """A citation with its best passage or, if `alone`, a single passage.

    `place` is the passage's index among the fetched ones; None if the citation has none.
    """

    fetched: Fetched
    place: int | None
    score: float
    scores: Mapping[str, float]
    alone: bool = False

    @property
    def pmid(self) -> int:
        """PMID of the citation."""
        return self.fetched.citation.pmid

    @property
    def key(self) -> tuple[int, int | None]:
        """Key that is equal for two hits of the same citation or passage."""
        return (self.pmid, self.place if self.alone else None)

    @property
    def text(self) -> str:
        """Text that a reranker scores."""
        if self.alone and self.place is not None:
            return self.fetched.passages[self.place].text
        return rerank_text(self.fetched)

    @property
    def passage(self) -> str:
        """Text of the passage, or `text` if there is none."""
        return self.text if self.place is None else self.fetched.passages[self.place].text

    @property
    def whole(self) -> str:
        """Text for the reader: title and abstract, or only the passage if `alone`."""
        return self.text if self.alone else self.fetched.citation.search_text

    @property
    def late(self) -> float | None:
        """Late-interaction score of `text` from stored token vectors; None without them."""
        if not self.alone or self.place is None or self.fetched.late is None:
            return self.fetched.late_read
        return self.fetched.late[self.place]

    @property
    def vector(self) -> Halves | None:
        """Vector (d,) of the passage; None if no shard sent it."""
        held = self.fetched.vectors
        return None if held is None or self.place is None else held[self.place]

    def citation(self) -> RankedCitation:
        """Return the hit as a ranked citation, with its score and its scores by stage."""
        return RankedCitation.of(self.fetched.citation, self.score, self.scores)

    def evidence(self) -> Evidence | None:
        """Return the passage with its scores; None if there is none or it is retracted."""
        if self.place is None:
            return None
        place = self.place
        scores = {**self.scores, "passage": self.fetched.dense[place], "score": self.score}
        return Evidence.of(self.fetched.passages[place], self.fetched.citation, scores)


def citation_hits(fused: Fused, wanted: int, fetched: Sequence[Fetched]) -> list[Hit]:
    """Return hits for the first `wanted` of `fused` that could be fetched, in their order."""
    held = {f.citation.pmid: f for f in fetched}
    rows = zip(fused.pmids[:wanted].tolist(), fused.score, fused.dense, fused.bm25, strict=False)
    return [
        Hit(held[pmid], held[pmid].best_passage(), float(score), _scores(score, dense, bm25))
        for pmid, score, dense, bm25 in rows
        if pmid in held
    ]


def passage_hits(
    fused: Fused,
    fetched: Sequence[Fetched],
    bm25: Bm25Query | None,
    retrieve: RetrieverSettings,
    fusion: FusionSettings,
    analyser: Analyser,
) -> list[Hit]:
    """Return the best passages of the fetched citations, up to the limits in `retrieve`.

    With a single branch they are the best of the whole index, because each of the n best passages
    belongs to one of the n citations with the best passages. `bm25` has passage statistics
    of terms by `analyser`.
    """
    held = {f.citation.pmid: f for f in fetched}
    places = [
        (held[pmid], i)
        for pmid in fused.pmids.tolist()
        if pmid in held
        for i in held[pmid].abstract_first()
    ]
    lexical = [bm25.score(analyser.terms(f.passages[i].text)) if bm25 else 0.0 for f, i in places]
    candidates = Candidates(
        pmids=np.arange(len(places)),
        dense=np.asarray([f.dense[i] for f, i in places], np.float32),
        bm25=np.asarray(lexical, np.float32),
        found_dense=np.ones(len(places), np.bool_),
        found_bm25=np.asarray(lexical, np.float32) > 0,
    )
    ranked = fuse(candidates, retrieve, fusion)
    rows = zip(ranked.pmids.tolist(), ranked.score, ranked.dense, ranked.bm25, strict=True)
    return [
        Hit(of, place, float(score), _scores(score, dense, term), alone=True)
        for row, score, dense, term in rows
        for of, place in [places[row]]
    ]


def _scores(fused: float, dense: float, bm25: float) -> dict[str, float]:
    return {"fused": float(fused), "dense": float(dense), "bm25": float(bm25)}


def merge_hits(parts: Iterable[Sequence[Hit]]) -> list[Hit]:
    """Merge the hits of several searches, keeping the best score of each, best first.

    Ties go to the lower PMID and the earlier passage.
    """
    best: dict[tuple[int, int | None], Hit] = {}
    for hit in (hit for part in parts for hit in part):
        if hit.key not in best or best[hit.key].score < hit.score:
            best[hit.key] = hit
    return sorted(best.values(), key=lambda hit: (-hit.score, hit.pmid, hit.place or 0))


def first_per_citation(hits: Iterable[Hit]) -> list[Hit]:
    """Return the first hit of each citation, in order."""
    first: dict[int, Hit] = {}
    for hit in hits:
        first.setdefault(hit.pmid, hit)
    return list(first.values())


def rescored(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """Return the hits in the same order with new scores, divided by the maximum."""
    greatest = max(scores, default=0.0)
    scale = 1 / greatest if greatest > 0 else 1.0
    return [replace(h, score=max(s, 0.0) * scale) for h, s in zip(hits, scores, strict=True)]
