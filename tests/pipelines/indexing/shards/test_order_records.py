from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.indexing.shards.order_records import Events, live_rows


def events(*rows: tuple[int, ...]) -> Events:
    """Return events from rows of (pmid, file, position) and an optional version (default 1)."""
    columns = np.asarray([(*row, 1)[:4] for row in rows], np.int64).reshape(-1, 4).T
    return Events(*(np.ascontiguousarray(c) for c in columns))


def test_deletion_removes_only_the_named_version() -> None:
    records = events((5, 0, 0, 2), (6, 0, 1, 2), (7, 0, 2, 2))
    found = live_rows(records, events((5, 1, 0, 1), (6, 1, 1, 2), (7, 1, 2, 0)))
    assert found.rows.tolist() == [0]
    assert found.deleted_pmids.tolist() == [6, 7]


def test_indexed_record_stays_live_without_a_deciding_event() -> None:
    held = events((5, -1, 0, 2), (6, -1, 0, 2), (7, -1, 0, 1), (8, -1, 0, 2))
    new, gone = events((5, 0, 0, 1), (7, 0, 1, 1)), events((6, 0, 2, 1), (8, 0, 3, 2))
    found = live_rows(new, gone, held)
    assert found.rows.tolist() == [1]
    assert (found.touched.tolist(), found.removed.tolist()) == ([7, 8], [8])
    assert found.superseded == 1


EVENTS = st.tuples(st.integers(1, 3), st.integers(0, 3), st.booleans())


@pytest.mark.slow
@given(st.lists(EVENTS, max_size=25), st.randoms(use_true_random=False))
def test_live_rows_agree_with_a_sequential_reading(
    history: list[tuple[int, int, bool]], random: Random
) -> None:
    live: dict[int, tuple[int, int]] = {}
    records, deletions = [], []
    for position, (pmid, version, deletes) in enumerate(history):
        if deletes:
            deletions.append((pmid, position // 5, position % 5, version))
            if version in (0, live.get(pmid, (0, 0))[1]):
                live.pop(pmid, None)
            continue
        records.append((pmid, position // 5, position % 5, version or 1))
        if pmid not in live or live[pmid][1] <= (version or 1):
            live[pmid] = (position, version or 1)
    random.shuffle(records)
    found = live_rows(events(*records), events(*deletions))
    places = [records[row][1] * 5 + records[row][2] for row in found.rows]
    assert places == [live[pmid][0] for pmid in sorted(live)]
    assert found.deleted == len({row[0] for row in records} - set(live))
    assert found.superseded == len(records) - len(live) - found.deleted
