"""A slice of the fuzzed files; `python -m tests.hostile.fuzz_xml` reads as many as you like."""

import pytest

from tests.hostile.fuzz_xml import run


@pytest.mark.slow
def test_what_is_drawn_by_chance_neither_hangs_nor_swells_nor_changes_what_is_sound() -> None:
    faults, ended = run(range(300))
    assert faults == []
    assert set(ended) == {"refused", "set aside", "whole"}
