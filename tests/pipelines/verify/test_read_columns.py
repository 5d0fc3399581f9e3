from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import ipc

from pipelines.verify.read_columns import UNREADABLE, integers, read_batches, read_integers

TEXT = "x" * 10_000
BATCHES, ROWS = 20, 50


def write_batches(path: Path, *pmids: list[int | None]) -> Path:
    schema = pa.schema([("pmid", pa.int64()), ("text", pa.string())])
    with ipc.new_file(path, schema) as writer:
        for part in pmids:
            writer.write_batch(pa.record_batch([part, [TEXT] * len(part)], schema=schema))
    return path


def test_columns_are_read_from_all_batches_in_the_given_order(tmp_path: Path) -> None:
    path = write_batches(tmp_path / "a", [3, 5], [], [7])
    assert read_integers(path, "pmid").tolist() == [3, 5, 7]
    assert next(iter(read_batches(path, ["text", "pmid"]))).schema.names == ["text", "pmid"]
    with pytest.raises(ValueError, match="1 nulls in column pmid"):
        read_integers(write_batches(tmp_path / "b", [3, None]), "pmid")


def test_integer_columns_do_not_keep_the_batch_in_memory(tmp_path: Path) -> None:
    path = write_batches(tmp_path / "a", *[list(range(ROWS))] * BATCHES)
    before = pa.total_allocated_bytes()
    kept = [integers(batch, "pmid") for batch in read_batches(path, ["pmid"])]
    assert len(kept) == BATCHES
    assert pa.total_allocated_bytes() - before < 2 * ROWS * len(TEXT)


def test_invalid_offsets_are_refused(tmp_path: Path) -> None:
    path = write_batches(tmp_path / "a", [3])
    data = bytearray(path.read_bytes())
    # The offsets 0 and len(TEXT), four bytes each, are just before the text.
    end = data.rindex(len(TEXT).to_bytes(4, "little"), 0, data.index(TEXT.encode()))
    data[end : end + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    with pytest.raises(UNREADABLE):
        list(read_batches(path, ["text"]))
