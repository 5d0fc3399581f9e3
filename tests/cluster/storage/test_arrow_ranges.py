from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cluster.arrow_records import RowTaker
from cluster.errors import IndexFormatError
from cluster.storage.arrow_ranges import RangedArrowFile
from cluster.storage.locations import StoredLocation, put
from tests.faults.memory_store import MemoryStore

pytestmark = pytest.mark.unit

SCHEMA = pa.schema(
    [
        pa.field("pmid", pa.int64(), nullable=False),
        ("year", pa.int16()),
        ("title", pa.string()),
        ("keywords", pa.list_(pa.string())),
        ("mesh", pa.list_(pa.struct([("ui", pa.string()), ("major", pa.bool_())]))),
    ]
)
ROWS = [
    {
        "pmid": n,
        "year": None if n % 7 == 0 else 2000 + n % 20,
        "title": None if n % 11 == 0 else f"title {n} " * (n % 5),
        "keywords": None if n % 13 == 0 else [f"keyword {n} {k}" for k in range(n % 4)],
        "mesh": [{"ui": f"D{k}", "major": None if k == 2 else k > n % 3} for k in range(n % 6)],
    }
    for n in range(1000)
]


def stored(folder: Path, batch_rows: int) -> StoredLocation:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SCHEMA) as writer:
        for begin in range(0, len(ROWS), batch_rows):
            part = ROWS[begin : begin + batch_rows]
            writer.write_batch(pa.RecordBatch.from_pylist(part, SCHEMA))
    location = StoredLocation.at("s3://bucket/rows.arrow", folder)
    put(location, sink.getvalue().to_pybytes())
    return location


def test_rows_read_by_range_equal_those_of_the_file(tmp_path: Path) -> None:
    store = MemoryStore()
    with store.in_place():
        location = stored(tmp_path, 300)
        size = location.stat().st_size
        file = RangedArrowFile(location, size)
        taker = RowTaker(file.table, file.fetch)
        assert taker.column("pmid").to_pylist() == list(range(1000))
        for seed in range(2):
            rows = np.random.default_rng(seed).choice(1000, 6, replace=False)
            found = taker.take(rows, ["title", "mesh", "keywords", "pmid", "year"]).to_pylist()
            assert found == [ROWS[row] for row in rows]
        assert taker.take(np.empty(0, np.int64)).num_rows == 0
        # Row 0 has an empty title and an empty list: there is nothing to read below them.
        assert taker.take(np.array([0]), ["mesh", "keywords"]).to_pylist()[0]["mesh"] == []
        assert taker.take(np.array([1]), ["mesh"]).to_pylist() == [{"mesh": ROWS[1]["mesh"]}]
        before, few = store.bytes_read, np.arange(3)
        taker.take(few)
        again = store.bytes_read
        taker.take(few)
        assert store.bytes_read == again
        assert 0 < before <= again <= size


def test_damaged_object_is_refused(tmp_path: Path) -> None:
    with MemoryStore().in_place():
        location = stored(tmp_path, 300)
        data = location.read_bytes()
        put(location, data[:-1])
        with pytest.raises(IndexFormatError, match="shorter than the"):
            RangedArrowFile(location, len(data))
        put(location, bytes(len(data)))
        with pytest.raises(IndexFormatError, match="not an Arrow file"):
            RangedArrowFile(location, len(data))
        with pytest.raises(IndexFormatError, match="missing from the index"):
            RangedArrowFile(location.parent / "none.arrow", 100)
