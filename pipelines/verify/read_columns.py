"""Columns of an Arrow file, one record batch in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from pipelines.verify.note_findings import Ints

# What a damaged or foreign Arrow file raises; ArrowInvalid is a ValueError.
UNREADABLE = (OSError, ValueError, pa.ArrowException)


def read_batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches of `path`, with `columns` alone, each validated to its last offset.

    Read rather than mapped, so that the memory of one is free before the next. Raises one
    of UNREADABLE for a file that is damaged or lacks a column.
    """
    with pa.OSFile(str(path)) as file:
        names = ipc.open_file(file).schema.names
        chosen = [names.index(column) for column in columns]
        reader = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=chosen))
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            batch.validate(full=True)
            yield batch.select(list(columns))


def integers(batch: pa.RecordBatch, column: str) -> Ints:
    """A column of whole numbers. Raises ValueError where one is null."""
    values = batch.column(column)
    if values.null_count:
        raise ValueError(f"{values.null_count} nulls in column {column}")
    # A view would keep the whole batch, with its texts.
    return np.array(values.to_numpy(zero_copy_only=False), np.int64)


def read_integers(path: Path, column: str) -> Ints:
    """The whole of one column. Raises one of UNREADABLE."""
    parts = [integers(batch, column) for batch in read_batches(path, [column])]
    return np.concatenate([np.empty(0, np.int64), *parts])
