"""Staging: what a build has parsed and embedded so far, on disk, by source file.

    staging/<build>/0003-pubmed26n0003/part-<name>.arrow   one record batch a shard
    staging/<build>/0003-pubmed26n0003/parsed.json         counts, once read to its end
    staging/<build>/0003-pubmed26n0003/deletions.arrow     its DeleteCitation records

A source is complete when its parts hold as many citations as `parsed.json` says; an
incomplete one is thrown away and read again, so that a build resumes by source file.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc
from pydantic import BaseModel, ConfigDict, ValidationError

from cluster.errors import InputError
from cluster.index.layout import shard_of
from cluster.index.write_segment import EMBEDDED_SCHEMA
from cluster.object_store import File
from cluster.records import Deletion
from cluster.storage import published_atomically, write_atomically

PARSED = "parsed.json"
DELETIONS = "deletions.arrow"
DELETION_SCHEMA = pa.schema([("pmid", pa.int64()), ("position", pa.int64())])


class ParsedSource(BaseModel):
    """The account of one source file. With an `error` nothing of it is used."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    bytes: int
    modified_ns: int
    sha256: str = ""
    read: int = 0
    kept: int = 0
    deletions: int = 0
    dropped: dict[str, int] = {}
    examples: tuple[str, ...] = ()
    error: str = ""


def write_part(table: pa.Table, directory: Path, shards: int) -> None:
    """Write rows in EMBEDDED_SCHEMA as one Arrow file whose batch s holds shard s's rows."""
    shard = pa.array([shard_of(p, shards) for p in table.column("pmid").to_pylist()], pa.int32())
    with (
        published_atomically(directory / f"part-{uuid.uuid4().hex}.arrow") as aside,
        ipc.new_file(aside, EMBEDDED_SCHEMA) as writer,
    ):
        for number in range(shards):
            rows = table.filter(pa.compute.equal(shard, number)).combine_chunks()
            batches = rows.to_batches()
            empty = pa.RecordBatch.from_pylist([], schema=EMBEDDED_SCHEMA)
            writer.write_batch(batches[0] if batches else empty)


def part_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("part-*.arrow"))


def read_part(path: Path, shard: int) -> pa.RecordBatch:
    """The rows of one shard in one part, memory-mapped."""
    return ipc.open_file(pa.memory_map(str(path))).get_batch(shard)


def staged_rows(directory: Path) -> int:
    """How many citations the parts of a source hold."""
    total = 0
    for path in part_files(directory):
        reader = ipc.open_file(pa.memory_map(str(path)))
        total += sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
    return total


def staged_dimensions(directories: Sequence[Path]) -> int:
    """The dimensions of the staged vectors; InputError where no source holds any text."""
    for path in (p for d in directories for p in part_files(d)):
        reader = ipc.open_file(pa.memory_map(str(path)))
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            vectors = batch.column("vectors").to_pylist()
            for spans, blob in zip(batch.column("spans").to_pylist(), vectors, strict=True):
                if spans:
                    return len(blob) // (2 * len(spans))
    raise InputError("the sources hold no citation with a title or an abstract to index")


def write_account(directory: Path, account: ParsedSource, deletions: Sequence[Deletion]) -> None:
    """Record that a source was read to its end, or how it failed."""
    rows = [{"pmid": d.pmid, "position": d.position} for d in deletions]
    with (
        published_atomically(directory / DELETIONS) as aside,
        ipc.new_file(aside, DELETION_SCHEMA) as writer,
    ):
        writer.write_table(pa.Table.from_pylist(rows, schema=DELETION_SCHEMA))
    write_atomically(directory / PARSED, account.model_dump_json(indent=1).encode())


def read_account(directory: Path) -> ParsedSource | None:
    """The account of a source, or None while there is none that can be trusted."""
    try:
        return ParsedSource.model_validate_json((directory / PARSED).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def read_deletions(directory: Path) -> pa.Table:
    return ipc.open_file(pa.memory_map(str(directory / DELETIONS))).read_all()


def complete_account(directory: Path, source: File) -> ParsedSource | None:
    """The account of a source whose staging is whole and whose file has not changed."""
    account = read_account(directory)
    if account is None or account.error:
        return None
    found = source.stat()
    unchanged = (account.bytes, account.modified_ns) == (found.st_size, found.st_mtime_ns)
    return account if unchanged and staged_rows(directory) == account.kept else None


def clear(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
