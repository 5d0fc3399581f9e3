from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipelines.vocabulary.sorted_runs import ranked, run_lengths, run_starts


def test_a_run_ends_where_any_column_changes() -> None:
    numbers, texts = np.array([1, 1, 1, 2]), pa.array(["a", "a", "b", "b"])
    assert run_starts([numbers, texts]).tolist() == [0, 2, 3]
    assert run_starts([pa.array([], pa.string())]).tolist() == []
    assert run_lengths(np.array([0, 2, 3]), 7).tolist() == [2, 1, 4]


def test_strings_are_ranked_together_in_byte_order() -> None:
    one = pa.chunked_array([["b", "a"], ["b"]], pa.large_string())
    other = pa.chunked_array([["\U00020000", "\uffee"]], pa.large_string())
    strings, places = ranked([one, other])
    assert strings.to_pylist() == ["a", "b", "\uffee", "\U00020000"]
    assert [p.tolist() for p in places] == [[1, 0, 1], [3, 2]]
    strings, places = ranked([pa.chunked_array([], pa.large_string())] * 2)
    assert (len(strings), [len(p) for p in places]) == (0, [0, 0])
