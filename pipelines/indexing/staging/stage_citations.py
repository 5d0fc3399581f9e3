"""Staging: the citations that a build has parsed and embedded so far, on disk, by source file.

    staging/<build>/pubmed26n0003.xml.gz-<bytes>-<time>/
        part-0-255+300-399.arrow   citations at these positions; one record batch per shard
        parsed.json                counts, written when the source was read to its end
        deletions.arrow            its DeleteCitation records

A folder belongs to one state of its source file. Files are only added to it, and it is removed as a
whole once a version includes it (`drop_staging.py`); late writes by a worker of a
killed run are therefore harmless. A part is named after the positions of its citations, so that the
names alone show what is staged; a citation in two parts counts once. A source is complete when
the number of staged citations is that in `parsed.json`. For an incomplete source, a rerun embeds
only the citations that are missing.
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
import pyarrow.compute as pc
from pyarrow import ipc
from pydantic import BaseModel, ConfigDict, ValidationError

from cluster.arrow_records import map_table
from cluster.errors import InputError, StorageError
from cluster.index.layout import shard_of
from cluster.index.write_segment import EMBEDDED_SCHEMA
from cluster.records import Deletion
from cluster.storage.locations import Location, file_names, scratch_folder
from cluster.storage.object_store import File, asking
from cluster.storage.whole_files import published_atomically, write_atomically

PARSED = "parsed.json"
DELETIONS = "deletions.arrow"
# File names have at most 255 characters; a name with 8 runs has about 150.
RUNS_PER_NAME = 8
# Concurrent reads from an object store.
READS_AT_ONCE = 16
# Metadata key of a part: the number type in which its vectors were computed.
DTYPE = "dtype"
# Metadata keys of a part: the lowest and the highest value of each dimension of its vectors, as
# 16-bit floats, and the number of its vectors. A part without vectors has neither.
RANGES, VECTORS = b"ranges", b"vectors"
# Metadata key of the deletions: the number of citations of the source.
KEPT = b"kept"
DELETION_SCHEMA = pa.schema(
    [("pmid", pa.int64()), ("position", pa.int64()), ("version", pa.int64())]
)
Positions = npt.NDArray[np.int64]


class ParsedSource(BaseModel):
    """Account of one source file: the counts of its records, and why it failed or what was skipped.
    If it has an `error`, nothing of the source is used.

    `damaged` says for each unreadable record where it is and why it cannot be read.
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


def staging_directory(build: Location, source: File) -> Location:
    """Return the staging folder of `source` for its current size and modification time."""
    found = source.stat()
    return build / f"{source.name}-{found.st_size}-{found.st_mtime_ns}"


def runs_of(positions: npt.ArrayLike) -> list[str]:
    """Return positions as ascending runs of consecutive numbers, such as 0-255 and 300-300."""
    distinct = np.unique(np.asarray(positions, np.int64))
    if not len(distinct):
        return []
    runs = np.split(distinct, np.flatnonzero(np.diff(distinct) > 1) + 1)
    return [f"{run[0]}-{run[-1]}" for run in runs]


def positions_in(runs: Iterable[str]) -> Positions:
    """Return the distinct positions in `runs`, ascending."""
    ends = [run.split("-") for run in runs]
    spans = [np.arange(int(first), int(last) + 1) for first, last in ends]
    return np.unique(np.concatenate([np.empty(0, np.int64), *spans]))


def write_part(table: pa.Table, directory: Location, shards: int) -> None:
    """Write rows in EMBEDDED_SCHEMA of one source as Arrow files; batch s holds shard s."""
    positions = table.column("position")
    runs = runs_of(positions.to_numpy())
    for begin in range(0, len(runs), RUNS_PER_NAME):
        named = runs[begin : begin + RUNS_PER_NAME]
        rows = table.filter(pa.compute.is_in(positions, pa.array(positions_in(named))))
        _write_rows(rows, directory / f"part-{'+'.join(named)}.arrow", shards)


def _write_rows(table: pa.Table, path: Location, shards: int) -> None:
    shard = pa.array([shard_of(p, shards) for p in table.column("pmid").to_pylist()], pa.int32())
    metadata = {**(table.schema.metadata or {}), **_ranges(table)}
    with (
        published_atomically(path) as aside,
        ipc.new_file(aside, EMBEDDED_SCHEMA.with_metadata(metadata)) as writer,
    ):
        for number in range(shards):
            rows = table.filter(pa.compute.equal(shard, number)).combine_chunks()
            batches = rows.to_batches()
            empty = pa.RecordBatch.from_pylist([], schema=EMBEDDED_SCHEMA)
            writer.write_batch(batches[0] if batches else empty)


def _ranges(table: pa.Table) -> dict[bytes, bytes]:
    count = pc.sum(pc.list_value_length(table.column("spans"))).as_py()
    if not count:
        return {}
    joined = b"".join(table.column("vectors").to_pylist())
    vectors = np.frombuffer(joined, np.float16).reshape(count, -1).astype(np.float32)
    ranges = np.stack([vectors.min(axis=0), vectors.max(axis=0)]).astype(np.float16)
    return {RANGES: ranges.tobytes(), VECTORS: str(count).encode()}


def part_files(directory: Location) -> list[Location]:
    """Return the files of staged citations in a source's folder; none if it does not exist."""
    names = [n for n in file_names(directory) if n.startswith("part-") and n.endswith(".arrow")]
    return [directory / name for name in names]


def staged_positions(directory: Location) -> Positions:
    """Return the distinct positions of a source's staged citations, from file names alone."""
    return _positions(part_files(directory))


def _positions(parts: Sequence[Location]) -> Positions:
    names = [path.name for path in parts]
    listed = (name.removeprefix("part-").removesuffix(".arrow").split("+") for name in names)
    return positions_in(run for runs in listed for run in runs)


def _open_part(part: Location, columns: Sequence[str] | None = None) -> Any:
    """Open a part: map it if it is a local file, else read it by byte range.

    A mapped part has all columns, because Arrow copies the data when columns are selected.
    """
    if isinstance(part, Path):
        return ipc.open_file(pa.memory_map(str(part)))
    fields = [EMBEDDED_SCHEMA.get_field_index(name) for name in columns or ()]
    options = ipc.IpcReadOptions(included_fields=fields)
    return ipc.open_file(part.open_at_random(), options=options)


def read_part(part: Location, shard: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """Return the rows of one shard in one part. Raises InputError if a store cannot be read."""
    if isinstance(part, Path):
        return _open_part(part).get_batch(shard).select(_schema(columns).names)
    with asking(part.url):
        return _open_part(part, columns).get_batch(shard)


def read_parts(
    directory: Location,
    shard: int,
    columns: Sequence[str] | None = None,
    kept: int | None = None,
) -> pa.Table:
    """Return the memory-mapped rows of one shard in all parts of a source.

    `columns` selects columns (default all). From an object store, only the shard's own batches are
    copied to this machine. Raises InputError if the store cannot be read, and StorageError if the
    listed parts do not hold exactly `kept` citations, as when the listing is out of date.
    """
    parts = part_files(directory)
    if kept is not None and (found := len(_positions(parts))) != kept:
        raise StorageError(
            f"{directory}: {found} of {kept} staged citations are listed here; where the store's "
            "lists lag behind, run the same command again, otherwise remove this folder first"
        )
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
        # A mapped file stays readable after its folder was removed.
        return map_table(path)


def _schema(columns: Sequence[str] | None) -> pa.Schema:
    wanted = EMBEDDED_SCHEMA.names if columns is None else columns
    return pa.schema([field for field in EMBEDDED_SCHEMA if field.name in wanted])


def staged_dimensions(directories: Sequence[Location]) -> int:
    """Return the dimensions of the staged vectors. Raises InputError if no source has any text."""
    for part in (p for d in directories for p in part_files(d)):
        reader = _open_part(part)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            vectors = batch.column("vectors").to_pylist()
            for spans, blob in zip(batch.column("spans").to_pylist(), vectors, strict=True):
                if spans:
                    return len(blob) // (2 * len(spans))
    raise InputError("the sources hold no citation with a title or an abstract to index")


def staged_dtype(directories: Sequence[Location]) -> str:
    """Return the number type of the first staged vectors, or "" if their part has none."""
    for part in (p for d in directories for p in part_files(d)):
        return _metadata(part).get(DTYPE.encode(), b"").decode()
    return ""


def _metadata(part: Location) -> dict[bytes, bytes]:
    return dict(_open_part(part).schema.metadata or {})


def staged_ranges(
    directories: Sequence[Location], dimensions: int
) -> tuple[npt.NDArray[np.float32], int]:
    """Return the lowest and highest values of all staged vectors (2, dimensions), and their number.

    They were recorded when the parts were written, so that no vector is read. Without vectors, the
    ranges are 0.
    """
    parts = [part for directory in directories for part in part_files(directory)]
    ranges, count = np.zeros((2, dimensions), np.float32), 0
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        for metadata in pool.map(_metadata, parts):
            if RANGES not in metadata:
                continue
            own = np.frombuffer(metadata[RANGES], np.float16).reshape(2, dimensions)
            first = own if count == 0 else ranges
            ranges = np.stack([np.minimum(first[0], own[0]), np.maximum(first[1], own[1])])
            count += int(metadata[VECTORS])
    return ranges.astype(np.float32), count


def write_account(
    directory: Location, account: ParsedSource, deletions: Sequence[Deletion]
) -> None:
    """Record that a source was read to its end, or why it failed."""
    rows = [asdict(deletion) for deletion in deletions]
    schema = DELETION_SCHEMA.with_metadata({KEPT: str(account.kept)})
    with (
        published_atomically(directory / DELETIONS) as aside,
        ipc.new_file(aside, schema) as writer,
    ):
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    write_atomically(directory / PARSED, account.model_dump_json(indent=1).encode())


def read_account(directory: Location) -> ParsedSource | None:
    """Return the account of a source, or None if it is missing or invalid."""
    try:
        return ParsedSource.model_validate_json((directory / PARSED).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def read_deletions(directory: Location) -> pa.Table:
    """Return the staged DeleteCitation records of a source.

    Raises FileNotFoundError if there are none.
    """
    return ipc.open_file(pa.py_buffer((directory / DELETIONS).read_bytes())).read_all()


def complete_account(directory: Location, source: File) -> ParsedSource | None:
    """Return the account of a fully staged, unchanged source, else None."""
    account = read_account(directory)
    if account is None or account.error:
        return None
    found = source.stat()
    unchanged = (account.bytes, account.modified_ns) == (found.st_size, found.st_mtime_ns)
    whole = len(staged_positions(directory)) == account.kept
    return account if unchanged and whole else None


def kept_beside(deletions: pa.Table) -> int | None:
    """Return the number of citations recorded with a source's deletions, or None if missing."""
    said = (deletions.schema.metadata or {}).get(KEPT)
    return None if said is None else int(said)
