"""BM25 statistics of a whole version, so that a search need not request them from the shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cluster.index.copies import verified
from cluster.index.layout import terms_file
from cluster.index.manifest import Manifest
from cluster.index.terms.term_table import NO_TERMS, OVER, frequency_of, map_terms, merge_terms
from cluster.storage.locations import Location


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of live units and of terms in a version or shard, and of units per term."""

    units: int
    terms: int
    frequencies: Mapping[str, int]


class CollectionTerms:
    """The memory-mapped term tables of a version, with the totals of its manifest."""

    def __init__(self, manifest: Manifest, tables: Sequence[pa.Table]) -> None:
        self._totals: dict[str, tuple[int, int]] = {
            over: (
                sum(shard.units(over) for shard in manifest.shards),
                sum(shard.live_terms(over) for shard in manifest.shards),
            )
            for over in OVER
        }
        self._tables = tables

    @classmethod
    def open(cls, index: Location, manifest: Manifest) -> CollectionTerms:
        """Open the tables of a published version. Raises IndexFormatError if one is damaged."""
        tables = []
        for entry in manifest.terms:
            file = str(terms_file(entry.version))
            tables.append(map_terms(verified(index, {file: entry.counts}) / file))
        return cls(manifest, tables)

    def statistics(self, terms: Iterable[str], over: str) -> Statistics:
        """Return the statistics of `terms` for BM25 `over` "citations" or "passages"."""
        units, length = self._totals[over]
        found = {term: frequency_of(self._tables, term, over) for term in terms}
        return Statistics(units, length, found)

    def frequent(self, least: int, over: str) -> tuple[list[str], NDArray[np.int64]]:
        """Return the terms in at least `least` units of `over`, with counts; reads all terms."""
        merged = merge_terms(self._tables) if len(self._tables) > 1 else None
        table = merged if merged is not None else next(iter(self._tables), NO_TERMS)
        found = table.filter(pa.compute.greater_equal(table[over], least))
        return found["term"].to_pylist(), np.asarray(found[over].to_numpy(), np.int64)
