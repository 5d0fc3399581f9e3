import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.build.order_records import Events, live_rows

NONE = Events(*(np.empty(0, np.int64) for _ in range(4)))


def events(*rows: tuple[int, ...]) -> Events:
    """Rows of (pmid, file, position), and of a version, which is 1 where it is left out."""
    columns = np.asarray([(*row, 1)[:4] for row in rows], np.int64).reshape(-1, 4).T
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


@pytest.mark.slow
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


def test_a_lower_version_replaces_nothing() -> None:
    found = live_rows(events((5, 0, 0, 2), (5, 0, 1, 1), (6, 0, 2, 2), (6, 1, 0, 1)), NONE)
    assert found.rows.tolist() == [0, 2]
    assert found.superseded == 2


def test_a_higher_version_replaces_and_so_does_a_revision_of_it() -> None:
    assert live_rows(events((5, 0, 0), (5, 0, 1, 2), (5, 0, 2, 2)), NONE).rows.tolist() == [2]


def test_a_deletion_removes_the_version_that_it_names_and_no_other() -> None:
    records = events((5, 0, 0, 2), (6, 0, 1, 2), (7, 0, 2, 2))
    found = live_rows(records, events((5, 1, 0, 1), (6, 1, 1, 2), (7, 1, 2, 0)))
    assert found.rows.tolist() == [0]
    assert found.deleted_pmids.tolist() == [6, 7]


def test_after_its_deletion_any_version_may_come() -> None:
    found = live_rows(events((5, 0, 0, 2), (5, 1, 1, 1)), events((5, 1, 0, 2)))
    assert found.rows.tolist() == [1]


def test_what_an_index_holds_stays_where_no_new_event_counts() -> None:
    held = events((5, -1, 0, 2), (6, -1, 0, 2), (7, -1, 0, 1), (8, -1, 0, 2))
    new, gone = events((5, 0, 0, 1), (7, 0, 1, 1)), events((6, 0, 2, 1), (8, 0, 3, 2))
    found = live_rows(new, gone, held)
    assert found.rows.tolist() == [1]
    assert (found.touched.tolist(), found.removed.tolist()) == ([7, 8], [8])
    assert found.superseded == 1


EVENTS = st.tuples(st.integers(1, 3), st.integers(0, 3), st.booleans())


@pytest.mark.slow
@given(st.lists(EVENTS, max_size=25))
def test_versions_in_any_order_agree_with_a_sequential_reading(
    history: list[tuple[int, int, bool]],
) -> None:
    live: dict[int, tuple[int, int]] = {}
    records, deletions = [], []
    for place, (pmid, version, deletes) in enumerate(history):
        if deletes:
            deletions.append((pmid, place // 5, place, version))
            if version in (0, live.get(pmid, (0, 0))[1]):
                live.pop(pmid, None)
            continue
        records.append((pmid, place // 5, place, version or 1))
        if pmid not in live or live[pmid][1] <= (version or 1):
            live[pmid] = (place, version or 1)
    found = live_rows(events(*records), events(*deletions))
    assert [records[row][2] for row in found.rows] == [live[p][0] for p in sorted(live)]
