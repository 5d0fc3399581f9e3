"""Staging: what a build has parsed and embedded so far, on disk, by source file.

    staging/<build>/pubmed26n0003.xml.gz-<bytes>-<time>/
        part-0-255+300-399.arrow   citations by their positions; one record batch a shard
        parsed.json                counts, once read to its end
        deletions.arrow            its DeleteCitation records

A folder belongs to one state of its source and is never cleared, so that what a worker of
a killed run still writes into it is only ever more of the same. A part is named after the
positions of its citations: names alone tell what is staged, and what two parts hold counts
once. A source is complete when as many citations are staged as `parsed.json` says; of
another, a rerun embeds only those that are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
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
# A name has at most 255 characters; that of 8 runs, which is rarely reached, has about 150.
RUNS_PER_NAME = 8
DELETION_SCHEMA = pa.schema([("pmid", pa.int64()), ("position", pa.int64())])
Positions = npt.NDArray[np.int64]


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


def staging_directory(build: Path, source: File) -> Path:
    """Where `source` is staged below `build`, as long as its bytes and its time are these."""
    found = source.stat()
    return build / f"{source.name}-{found.st_size}-{found.st_mtime_ns}"


def runs_of(positions: npt.ArrayLike) -> list[str]:
    """Positions as runs of consecutive ones, ascending: 0-255, 300-300."""
    distinct = np.unique(np.asarray(positions, np.int64))
    if not len(distinct):
        return []
    runs = np.split(distinct, np.flatnonzero(np.diff(distinct) > 1) + 1)
    return [f"{run[0]}-{run[-1]}" for run in runs]


def positions_in(runs: Iterable[str]) -> Positions:
    """The distinct positions in runs, ascending."""
    ends = [run.split("-") for run in runs]
    spans = [np.arange(int(first), int(last) + 1) for first, last in ends]
    return np.unique(np.concatenate([np.empty(0, np.int64), *spans]))


def write_part(table: pa.Table, directory: Path, shards: int) -> None:
    """Write rows in EMBEDDED_SCHEMA of one source as Arrow files whose batch s holds shard s's."""
    positions = table.column("position")
    runs = runs_of(positions.to_numpy())
    for begin in range(0, len(runs), RUNS_PER_NAME):
        named = runs[begin : begin + RUNS_PER_NAME]
        rows = table.filter(pa.compute.is_in(positions, pa.array(positions_in(named))))
        _write_rows(rows, directory / f"part-{'+'.join(named)}.arrow", shards)


def _write_rows(table: pa.Table, path: Path, shards: int) -> None:
    shard = pa.array([shard_of(p, shards) for p in table.column("pmid").to_pylist()], pa.int32())
    with (
        published_atomically(path) as aside,
        ipc.new_file(aside, EMBEDDED_SCHEMA) as writer,
    ):
        for number in range(shards):
            rows = table.filter(pa.compute.equal(shard, number)).combine_chunks()
            batches = rows.to_batches()
            empty = pa.RecordBatch.from_pylist([], schema=EMBEDDED_SCHEMA)
            writer.write_batch(batches[0] if batches else empty)


def part_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("part-*.arrow"))


def staged_positions(directory: Path) -> Positions:
    """The positions of the citations of a source that are staged, each once, by names alone."""
    names = [path.name for path in part_files(directory)]
    listed = (name.removeprefix("part-").removesuffix(".arrow").split("+") for name in names)
    return positions_in(run for runs in listed for run in runs)


def read_part(path: Path, shard: int) -> pa.RecordBatch:
    """The rows of one shard in one part, memory-mapped."""
    return ipc.open_file(pa.memory_map(str(path))).get_batch(shard)


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
    whole = len(staged_positions(directory)) == account.kept
    return account if unchanged and whole else None
