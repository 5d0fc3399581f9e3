import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.build.order_records import Events, live_rows

NONE = Events(*(np.empty(0, np.int64) for _ in range(3)))


def events(*rows: tuple[int, int, int]) -> Events:
    """Rows of (pmid, file, position)."""
    columns = np.asarray(rows, np.int64).reshape(-1, 3).T
    return Events(*(np.ascontiguousarray(c) for c in columns))


def test_rows_come_in_pmid_order() -> None:
    assert live_rows(events((9, 0, 0), (3, 0, 1)), NONE).rows.tolist() == [1, 0]


def test_a_later_file_supersedes() -> None:
    found = live_rows(events((5, 0, 9), (5, 1, 0)), NONE)
    assert found.rows.tolist() == [1]
    assert found.superseded == 1


def test_a_later_position_in_one_file_supersedes() -> None:
    assert live_rows(events((5, 0, 4), (5, 0, 2)), NONE).rows.tolist() == [0]


def test_a_deletion_removes_an_earlier_record() -> None:
    found = live_rows(events((5, 0, 0), (6, 0, 1)), events((5, 1, 7)))
    assert found.rows.tolist() == [1]
    assert (found.superseded, found.deleted) == (0, 1)


def test_a_later_record_revives_a_deleted_pmid() -> None:
    assert live_rows(events((5, 0, 0), (5, 2, 0)), events((5, 1, 0))).rows.tolist() == [1]


def test_a_deletion_of_an_unknown_pmid_counts_for_nothing() -> None:
    found = live_rows(events((5, 0, 0)), events((6, 1, 0)))
    assert (found.rows.tolist(), found.deleted) == ([0], 0)


def test_a_row_staged_twice_counts_once() -> None:
    found = live_rows(events((5, 0, 0), (5, 0, 0)), NONE)
    assert len(found.rows) == 1
    assert found.superseded == 0


def test_nothing_gives_nothing() -> None:
    assert live_rows(NONE, NONE).rows.tolist() == []


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=30).map(
        lambda history: [(pmid, deleted, i) for i, (pmid, deleted) in enumerate(history)]
    ),
    st.randoms(use_true_random=False),
)
def test_any_order_of_rows_agrees_with_a_sequential_reading(
    history: list[tuple[int, bool, int]], random: object
) -> None:
    sequential: dict[int, int] = {}
    for pmid, deleted, place in history:
        if deleted:
            sequential.pop(pmid, None)
        else:
            sequential[pmid] = place
    records = [(pmid, place // 7, place) for pmid, deleted, place in history if not deleted]
    deletions = [(pmid, place // 7, place) for pmid, deleted, place in history if deleted]
    random.shuffle(records)  # type: ignore[attr-defined]
    found = live_rows(events(*records), events(*deletions))
    live = {records[row][0]: records[row][2] for row in found.rows}
    assert live == sequential
    seen = {pmid for pmid, _, _ in records}
    assert found.deleted == len(seen - set(sequential))
    assert found.superseded == len(records) - len(found.rows) - found.deleted
