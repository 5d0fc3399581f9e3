"""Finds the articles that a segment's records mark as retracted or under an expression of concern.

A record marks its own article, and a notice marks another one, which need not be in the index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster.notices import DOUBTED, DOUBTS_OF, NOTICES, RETRACTED, RETRACTIONS_OF

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DoubtedArticles:
    """Parallel arrays in the order of `pmids`; `rows` are the citation rows that mark them.

    `retracted` is false for an expression of concern.
    """

    pmids: Rows
    rows: Rows
    retracted: npt.NDArray[np.bool_]

    def without(self, dead: Rows) -> DoubtedArticles:
        """Return the articles that are marked by rows other than the `dead` ones."""
        live = ~np.isin(self.rows, dead)
        return DoubtedArticles(self.pmids[live], self.rows[live], self.retracted[live])

    def among(self, pmids: Rows) -> dict[int, bool]:
        """Return the marked articles among `pmids`, and whether each is retracted."""
        chosen = np.isin(self.pmids, pmids)
        found: dict[int, bool] = {}
        for pmid, retracted in zip(
            self.pmids[chosen].tolist(), self.retracted[chosen].tolist(), strict=True
        ):
            found[pmid] = retracted or found.get(pmid, False)
        return found


def find_doubts(
    pmids: Rows, retracted: npt.NDArray[np.bool_], links: pa.ChunkedArray
) -> DoubtedArticles:
    """Return the articles that the rows of a segment mark.

    `retracted` says which rows are retracted, and `links` is their column of CITATION_SCHEMA.
    """
    own = np.flatnonzero(retracted)
    parts = [(pmids[own], own, np.ones(len(own), np.bool_))]
    first = 0
    for chunk in links.chunks:
        kinds = chunk.flatten().field("kind")
        owners = pc.list_parent_indices(chunk).to_numpy().astype(np.int64) + first
        others = chunk.flatten().field("pmid")
        concerned = [kind for kind, state in NOTICES.items() if state == DOUBTED]
        rows = owners[_are(kinds, concerned)]
        parts.append((pmids[rows], rows, np.zeros(len(rows), np.bool_)))
        for names, state in ((RETRACTIONS_OF, RETRACTED), (DOUBTS_OF, DOUBTED)):
            chosen = _are(kinds, names) & pc.is_valid(others).to_numpy(zero_copy_only=False)
            marked = others.filter(pa.array(chosen)).to_numpy().astype(np.int64)
            is_retracted = np.full(len(marked), state == RETRACTED)
            parts.append((marked, owners[chosen], is_retracted))
        first += len(chunk)
    found = DoubtedArticles(*map(np.concatenate, zip(*parts, strict=True)))
    order = np.argsort(found.pmids, kind="stable")
    return DoubtedArticles(found.pmids[order], found.rows[order], found.retracted[order])


def _are(kinds: pa.Array, names: list[str] | frozenset[str]) -> npt.NDArray[np.bool_]:
    chosen = pc.fill_null(pc.is_in(kinds, pa.array(sorted(names))), False)
    found: npt.NDArray[np.bool_] = chosen.to_numpy(zero_copy_only=False)
    return found
