"""The PMIDs that a segment replaces or removes in the older segments of its shard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster.arrow_records import map_table
from cluster.index.layout import SUPERSEDES

Pmids = npt.NDArray[np.int64]

_SUPERSEDES_SCHEMA = pa.schema([("pmid", pa.int64()), ("deleted", pa.bool_())])


@dataclass(frozen=True, slots=True)
class Supersedes:
    """PMIDs, ascending, that a segment replaces or removes in older segments.

    `deleted` flags those whose newest event is a deletion; a later segment that restores
    one lists it again without the flag.
    """

    pmids: Pmids
    deleted: npt.NDArray[np.bool_]


def write_supersedes(supersedes: Supersedes, directory: Path) -> None:
    """Write the PMIDs and their flags to the file SUPERSEDES of the segment at `directory`."""
    columns = [pa.array(supersedes.pmids), pa.array(supersedes.deleted)]
    with pa.ipc.new_file(directory / SUPERSEDES, _SUPERSEDES_SCHEMA) as writer:
        writer.write_table(pa.table(columns, schema=_SUPERSEDES_SCHEMA))


def read_supersedes(directory: Path) -> Supersedes:
    """Read the PMIDs of the segment at `directory`; empty if it has no such file."""
    if not (directory / SUPERSEDES).is_file():
        return Supersedes(np.empty(0, np.int64), np.empty(0, np.bool_))
    table = map_table(directory / SUPERSEDES)
    return Supersedes(
        np.asarray(table.column("pmid").to_numpy(), np.int64),
        np.asarray(table.column("deleted").to_numpy(zero_copy_only=False), np.bool_),
    )


def deleted_pmids(oldest_first: Iterable[Supersedes]) -> Pmids:
    """Return the PMIDs, ascending, that are deleted after applying all entries in order."""
    deleted = np.empty(0, np.int64)
    for newer in oldest_first:
        kept = np.setdiff1d(deleted, newer.pmids)
        deleted = np.union1d(kept, newer.pmids[newer.deleted])
    return deleted
