"""A sample of the fuzzed files; `python -m tests.hostile.fuzz_xml` reads any number."""

import pytest

from tests.hostile.fuzz_xml import run


@pytest.mark.slow
def test_random_damage_causes_no_hang_no_growth_and_no_wrong_record() -> None:
    faults, ended = run(range(300))
    assert faults == []
    assert set(ended) == {"refused", "set aside", "whole"}
