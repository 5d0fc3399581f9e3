"""Read columns of an Arrow file, with one record batch in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from pipelines.verify.note_findings import Ints

# Exceptions for a damaged or foreign Arrow file; ArrowInvalid is a ValueError.
UNREADABLE = (OSError, ValueError, pa.ArrowException)


def read_batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of `path` with only `columns`, each fully validated.

    Batches are read, not mapped, so that the memory of one is freed before the next. Raises one of
    UNREADABLE if the file is damaged or lacks a column.
    """
    with pa.OSFile(str(path)) as file:
        names = ipc.open_file(file).schema.names
        chosen = [names.index(column) for column in columns]
        reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=chosen))
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            batch.validate(full=True)
            yield batch.select(list(columns))


def known_columns(path: Path, columns: Sequence[str]) -> tuple[str, ...]:
    """Return those of `columns` that the file has. Raises one of UNREADABLE if it is damaged."""
    with pa.OSFile(str(path)) as file:
        names = ipc.open_file(file).schema.names
    return tuple(column for column in columns if column in names)


def integers(batch: pa.RecordBatch, column: str) -> Ints:
    """Return a column of integers. Raises ValueError if any is null."""
    values = batch.column(column)
    if values.null_count:
        raise ValueError(f"{values.null_count} nulls in column {column}")
    # Copied, because a view would keep the whole batch with its texts in memory.
    return np.array(values.to_numpy(zero_copy_only=False), np.int64)


def read_integers(path: Path, column: str) -> Ints:
    """Return a whole column of integers. Raises one of UNREADABLE."""
    parts = [integers(batch, column) for batch in read_batches(path, [column])]
    return np.concatenate([np.empty(0, np.int64), *parts])
