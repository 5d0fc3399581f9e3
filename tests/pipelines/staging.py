"""Write staged sources as a build does, without Ray or a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from cluster.index.manifest import SourceEntry
from cluster.records import Citation, Deletion
from cluster.storage.locations import StoredLocation
from cluster.storage.whole_files import sha256_of
from pipelines.indexing.staging.embed_passages import embed_citations, split_citations
from pipelines.indexing.staging.split_passages import make_splitter
from pipelines.indexing.staging.stage_citations import ParsedSource, write_account, write_part
from tests.small_index import embed_words

PlaceT = TypeVar("PlaceT", Path, StoredLocation)
SPLITTER = make_splitter("characters", 512, 64)


def stage(
    directory: PlaceT,
    citations: Sequence[Citation],
    deletions: Sequence[Deletion] = (),
    *,
    shards: int = 2,
    copies: int = 1,
) -> PlaceT:
    """Stage one source whose records are numbered in order; each copy of its part is a retry.

    The batches of a retry begin later, so each copy lacks one more of the first rows.
    """
    numbered = [replace(c, source=directory.name, position=n) for n, c in enumerate(citations)]
    table = embed_citations(split_citations(numbered, SPLITTER), embed_words, None)
    for copy in range(copies):
        write_part(table.slice(copy), directory, shards)
    write_account(directory, account(directory.name, kept=len(citations)), deletions)
    return directory


def source_entry(path: Path, modified_ns: int = 0) -> SourceEntry:
    """Return the manifest's entry of a source that deletes one citation."""
    return SourceEntry(
        name=path.name,
        bytes=path.stat().st_size,
        sha256=sha256_of(path),
        read=1,
        kept=0,
        deletions=1,
        dropped={},
        modified_ns=modified_ns,
    )


def account(name: str, kept: int, **fields: object) -> ParsedSource:
    values = {"name": name, "bytes": 1, "modified_ns": 1, "read": kept, "kept": kept, **fields}
    return ParsedSource.model_validate(values)
