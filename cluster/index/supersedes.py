"""What a segment does to the older ones of its shard: whom it replaces, what that takes away.

Dead citations stay in their segment until compaction, so their terms must be taken off
the statistics that BM25 scores by. They are counted once, when the segment that kills
them is written, and a reader only looks them up.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster.index.layout import DEAD_TERMS, SUPERSEDES
from cluster.text.analysis import analyse

Pmids = npt.NDArray[np.int64]

_SUPERSEDES_SCHEMA = pa.schema([("pmid", pa.int64()), ("deleted", pa.bool_())])
_OVER = ("citations", "passages")
_DEAD_SCHEMA = pa.schema([("term", pa.large_string()), *((over, pa.int64()) for over in _OVER)])


@dataclass(frozen=True, slots=True)
class Supersedes:
    """`pmids`, ascending, that a segment replaces or removes in older ones.

    `deleted` flags those whose newest event is a deletion; a later segment that revives
    one names it again, without the flag.
    """

    pmids: Pmids
    deleted: npt.NDArray[np.bool_]


def write_supersedes(supersedes: Supersedes, directory: Path) -> None:
    """Write the PMIDs and their flags to the file SUPERSEDES of the segment at `directory`."""
    columns = [pa.array(supersedes.pmids), pa.array(supersedes.deleted)]
    _write(pa.table(columns, schema=_SUPERSEDES_SCHEMA), directory / SUPERSEDES)


def read_supersedes(directory: Path) -> Supersedes:
    """Those of the segment at `directory`; none where it has no such file."""
    if not (directory / SUPERSEDES).is_file():
        return Supersedes(np.empty(0, np.int64), np.empty(0, np.bool_))
    table = _map(directory / SUPERSEDES)
    return Supersedes(
        np.asarray(table.column("pmid").to_numpy(), np.int64),
        np.asarray(table.column("deleted").to_numpy(zero_copy_only=False), np.bool_),
    )


def deleted_pmids(oldest_first: Iterable[Supersedes]) -> Pmids:
    """The PMIDs that are deleted after all of these, ascending."""
    deleted = np.empty(0, np.int64)
    for newer in oldest_first:
        kept = np.setdiff1d(deleted, newer.pmids)
        deleted = np.union1d(kept, newer.pmids[newer.deleted])
    return deleted


@dataclass(slots=True)
class UnitTerms:
    """Of some texts: how many hold each term, and how many terms they have in all."""

    frequencies: Counter[str]
    total: int = 0

    def add(self, texts: Iterable[str]) -> None:
        """Count the terms of more texts; each text is one unit."""
        for text in texts:
            terms = analyse(text)
            self.frequencies.update(set(terms))
            self.total += len(terms)


def write_dead_terms(terms: Mapping[str, UnitTerms], directory: Path) -> None:
    """`terms` of the units that die, by what BM25 goes over: "citations", "passages"."""
    names = sorted(set().union(*(t.frequencies for t in terms.values())))
    counts = [
        [terms[over].frequencies[name] if over in terms else 0 for name in names] for over in _OVER
    ]
    _write(pa.table([names, *counts], schema=_DEAD_SCHEMA), directory / DEAD_TERMS)


class DeadTerms:
    """The reader's side of `write_dead_terms`, mapped; empty where there is no such file."""

    def __init__(self, directory: Path) -> None:
        path = directory / DEAD_TERMS
        table = _map(path) if path.is_file() else _DEAD_SCHEMA.empty_table()
        # Python orders text by code points, Arrow and UTF-8 likewise.
        self._table = table.combine_chunks()

    def frequencies(self, terms: Iterable[str], over: str) -> dict[str, int]:
        """How many dead units hold each term."""
        names, counts = self._table.column("term"), self._table.column(over)
        found = {}
        for term in terms:
            row = bisect.bisect_left(names, term, key=lambda name: name.as_py())
            here = row < len(names) and names[row].as_py() == term
            found[term] = counts[row].as_py() if here else 0
        return found


def _write(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _map(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
