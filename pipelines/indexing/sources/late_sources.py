"""Late sources: numbered NLM files that come before files that the index already holds.

A record or deletion in a late source applies unless a later source in the index has the same PMID.
Live records name their source, but deletions do not, and a deletion of a PMID without a record is
not stored. The deletions in the later sources are therefore read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cluster.errors import InputError
from cluster.index.manifest import Manifest
from cluster.index.read_records import Rows
from cluster.pubmed.parse_articles import read_records
from cluster.pubmed.source_order import apply_order
from cluster.records import Deletion
from cluster.storage.object_store import File


@dataclass(frozen=True, slots=True)
class SourceOrder:
    """The order of the sources of an update among those that the index holds.

    `ranks` maps the name of each source to its rank; `staged` are the ranks of the update's sources
    in order. `deletions` maps the rank of a held source to the PMIDs and versions that it deletes.
    """

    ranks: Mapping[str, int]
    staged: Sequence[int]
    deletions: Mapping[int, Rows]


def first_late(manifest: Manifest, names: Sequence[str]) -> str | None:
    """Return the first new source in `names` that applies before one in the index, if any."""
    held = [source.name for source in manifest.sources]
    every = apply_order([*held, *names])
    last_held = max((every.index(name) for name in held), default=-1)
    return next((name for name in every[:last_held] if name in set(names)), None)


def later_deleting(manifest: Manifest, first: str) -> list[str]:
    """Return the index's sources that apply after the new source `first` and delete records."""
    every = apply_order([*(source.name for source in manifest.sources), first])
    later = set(every[every.index(first) :])
    return [s.name for s in manifest.sources if s.deletions and s.name in later]


def files_of(names: Sequence[str], sources: Sequence[File], late: str) -> list[File]:
    """Return the `sources` with these names. Raises InputError if any is missing."""
    given = {path.name: path for path in sources}
    if missing := [name for name in names if name not in given]:
        raise InputError(
            f"{late}: to apply it late, the deletions of {', '.join(missing)} are needed; name "
            "these files as well"
        )
    return [given[name] for name in names]


def deleted_in(path: File) -> Rows:
    """Return the PMIDs that the source deletes, each with the deleted version (n, 2)."""
    found = [
        (r.pmid, r.version) for r in read_records(path, strict=False) if isinstance(r, Deletion)
    ]
    return np.unique(np.asarray(found, np.int64).reshape(-1, 2), axis=0)


def order_of(
    manifest: Manifest, names: Sequence[str], deletions: Mapping[str, Rows]
) -> SourceOrder:
    """Return the order of an update's sources `names`, with `deletions` by the index's sources."""
    every = apply_order([*(s.name for s in manifest.sources), *names])
    ranks = {name: rank for rank, name in enumerate(every)}
    by_rank = {ranks[name]: pmids for name, pmids in deletions.items()}
    return SourceOrder(ranks, [ranks[name] for name in names], by_rank)
