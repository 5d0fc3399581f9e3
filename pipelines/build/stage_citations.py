"""Staging: what a build has parsed and embedded so far, on disk, by source file.

    staging/<build>/pubmed26n0003.xml.gz-<bytes>-<time>/
        part-0-255+300-399.arrow   citations by their positions; one record batch a shard
        parsed.json                counts, once read to its end
        deletions.arrow            its DeleteCitation records

A folder belongs to one state of its source and is never changed but removed whole, once a
version has taken it in (pipelines/build/drop_staging.py), so that what a worker of
a killed run still writes into it is only ever more of the same. A part is named after the
positions of its citations: names alone tell what is staged, and what two parts hold counts
once. A source is complete when as many citations are staged as `parsed.json` says; of
another, a rerun embeds only those that are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc
from pydantic import BaseModel, ConfigDict, ValidationError

from cluster.arrow_records import map_table
from cluster.errors import InputError
from cluster.index.layout import shard_of
from cluster.index.write_segment import EMBEDDED_SCHEMA
from cluster.records import Deletion
from cluster.storage.object_store import File, asking
from cluster.storage.places import Place, file_names, scratch_folder
from cluster.storage.whole_files import published_atomically, write_atomically

PARSED = "parsed.json"
DELETIONS = "deletions.arrow"
# A name has at most 255 characters; that of 8 runs, which is rarely reached, has about 150.
RUNS_PER_NAME = 8
# Of a store, so that waiting for one small read does not hold up the next.
READS_AT_ONCE = 16
# Metadata of a part: the number type that its vectors were computed in.
DTYPE = "dtype"
DELETION_SCHEMA = pa.schema(
    [("pmid", pa.int64()), ("position", pa.int64()), ("version", pa.int64())]
)
Positions = npt.NDArray[np.int64]


class ParsedSource(BaseModel):
    """The account of one source file. With an `error` nothing of it is used.

    `damaged` says of each record that could not be read where it stands and why.
    """

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
    damaged: tuple[str, ...] = ()
    error: str = ""


def staging_directory(build: Place, source: File) -> Place:
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


def write_part(table: pa.Table, directory: Place, shards: int) -> None:
    """Write rows in EMBEDDED_SCHEMA of one source as Arrow files whose batch s holds shard s's."""
    positions = table.column("position")
    runs = runs_of(positions.to_numpy())
    for begin in range(0, len(runs), RUNS_PER_NAME):
        named = runs[begin : begin + RUNS_PER_NAME]
        rows = table.filter(pa.compute.is_in(positions, pa.array(positions_in(named))))
        _write_rows(rows, directory / f"part-{'+'.join(named)}.arrow", shards)


def _write_rows(table: pa.Table, path: Place, shards: int) -> None:
    shard = pa.array([shard_of(p, shards) for p in table.column("pmid").to_pylist()], pa.int32())
    with (
        published_atomically(path) as aside,
        ipc.new_file(aside, EMBEDDED_SCHEMA.with_metadata(table.schema.metadata)) as writer,
    ):
        for number in range(shards):
            rows = table.filter(pa.compute.equal(shard, number)).combine_chunks()
            batches = rows.to_batches()
            empty = pa.RecordBatch.from_pylist([], schema=EMBEDDED_SCHEMA)
            writer.write_batch(batches[0] if batches else empty)


def part_files(directory: Place) -> list[Place]:
    """Files of staged citations in the source's folder; none where it does not exist."""
    names = [n for n in file_names(directory) if n.startswith("part-") and n.endswith(".arrow")]
    return [directory / name for name in names]


def staged_positions(directory: Place) -> Positions:
    """The positions of the citations of a source that are staged, each once, by names alone."""
    names = [path.name for path in part_files(directory)]
    listed = (name.removeprefix("part-").removesuffix(".arrow").split("+") for name in names)
    return positions_in(run for runs in listed for run in runs)


def _open_part(part: Place, columns: Sequence[str] | None = None) -> Any:
    """A reader of the record batches of a part, which is mapped, or read by byte range.

    Of a mapped one all columns are there, as Arrow copies what it maps once it is told which.
    """
    if isinstance(part, Path):
        return ipc.open_file(pa.memory_map(str(part)))
    fields = [EMBEDDED_SCHEMA.get_field_index(name) for name in columns or ()]
    options = ipc.IpcReadOptions(included_fields=fields)
    return ipc.open_file(part.open_at_random(), options=options)


def read_part(part: Place, shard: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """The rows of one shard in one part. Raises InputError where a store cannot be read."""
    if isinstance(part, Path):
        return _open_part(part).get_batch(shard).select(_schema(columns).names)
    with asking(part.url):
        return _open_part(part, columns).get_batch(shard)


def read_parts(directory: Place, shard: int, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of one shard in all parts of a source, mapped; all columns, or some.

    Of a store the shard's own batches are copied to this machine, and nothing else of the
    parts. Raises InputError where the store cannot be read.
    """
    parts = part_files(directory)
    if isinstance(directory, Path):
        batches = [read_part(part, shard, columns) for part in parts]
        return pa.Table.from_batches(batches, _schema(columns))
    with scratch_folder(directory) as folder:
        path = folder / "rows.arrow"
        with (
            ThreadPoolExecutor(READS_AT_ONCE) as pool,
            ipc.new_file(path, _schema(columns)) as writer,
        ):
            for batch in pool.map(lambda part: read_part(part, shard, columns), parts):
                writer.write_batch(batch)
        # Mapped, it stays readable when its name is gone.
        return map_table(path)


def _schema(columns: Sequence[str] | None) -> pa.Schema:
    wanted = EMBEDDED_SCHEMA.names if columns is None else columns
    return pa.schema([field for field in EMBEDDED_SCHEMA if field.name in wanted])


def staged_dimensions(directories: Sequence[Place]) -> int:
    """The dimensions of the staged vectors; InputError where no source holds any text."""
    for part in (p for d in directories for p in part_files(d)):
        reader = _open_part(part)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            vectors = batch.column("vectors").to_pylist()
            for spans, blob in zip(batch.column("spans").to_pylist(), vectors, strict=True):
                if spans:
                    return len(blob) // (2 * len(spans))
    raise InputError("the sources hold no citation with a title or an abstract to index")


def staged_dtype(directories: Sequence[Place]) -> str:
    """The number type of the first staged vectors; "" where their part does not record it."""
    for part in (p for d in directories for p in part_files(d)):
        metadata = _open_part(part).schema.metadata or {}
        return str(metadata.get(DTYPE.encode(), b"").decode())
    return ""


def write_account(directory: Place, account: ParsedSource, deletions: Sequence[Deletion]) -> None:
    """Record that a source was read to its end, or how it failed."""
    rows = [asdict(deletion) for deletion in deletions]
    with (
        published_atomically(directory / DELETIONS) as aside,
        ipc.new_file(aside, DELETION_SCHEMA) as writer,
    ):
        writer.write_table(pa.Table.from_pylist(rows, schema=DELETION_SCHEMA))
    write_atomically(directory / PARSED, account.model_dump_json(indent=1).encode())


def read_account(directory: Place) -> ParsedSource | None:
    """The account of a source, or None while there is none that can be trusted."""
    try:
        return ParsedSource.model_validate_json((directory / PARSED).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def read_deletions(directory: Place) -> pa.Table:
    """The staged DeleteCitation records of a source; raises FileNotFoundError without them."""
    return ipc.open_file(pa.py_buffer((directory / DELETIONS).read_bytes())).read_all()


def complete_account(directory: Place, source: File) -> ParsedSource | None:
    """The account of a source whose staging is whole and whose file has not changed."""
    account = read_account(directory)
    if account is None or account.error:
        return None
    found = source.stat()
    unchanged = (account.bytes, account.modified_ns) == (found.st_size, found.st_mtime_ns)
    whole = len(staged_positions(directory)) == account.kept
    return account if unchanged and whole else None
