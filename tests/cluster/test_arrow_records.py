import numpy as np
import pyarrow as pa
import pytest

from cluster.arrow_records import RowTaker, citations_to_table
from tests.small_index import citation

CITATIONS = [citation(pmid, f"Abstract {pmid}.", f"Title {pmid}") for pmid in range(1, 11)]
CHUNKED = pa.concat_tables(
    [citations_to_table(CITATIONS[begin:end]) for begin, end in ((0, 3), (3, 3), (3, 4), (4, 10))]
)


@pytest.mark.parametrize("rows", [[], [0], [9, 0, 3], [3, 3, 2, 2], list(range(10))])
def test_row_taker_keeps_the_requested_order(rows: list[int]) -> None:
    wanted = np.asarray(rows, np.int64)
    assert RowTaker(CHUNKED).take(wanted) == CHUNKED.take(pa.array(wanted))


def test_row_taker_selects_columns() -> None:
    found = RowTaker(CHUNKED).take(np.asarray([4]), ["title", "pmid"])
    assert found.to_pylist() == [{"title": "Title 5", "pmid": 5}]
