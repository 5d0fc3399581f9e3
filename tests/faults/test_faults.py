"""A slice of the simulator of faults; `python -m tests.faults` plays as many rounds as you like."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from cluster.index import lease, put_segment
from cluster.storage import whole_files
from cluster.storage.compare_and_swap import read_stamped, swap
from cluster.storage.conditional_store import Stamped
from tests.faults.inject import FAULTS
from tests.faults.memory_store import STORE_FAULTS
from tests.faults.rounds import Step, draw, failure_of, shrink


def play(seeds: range) -> tuple[dict[int, str], Counter[str]]:
    failures, happened = {}, Counter[str]()
    for seed in seeds:
        failure, fired = failure_of(seed, draw(seed))
        happened.update(fired)
        if failure:
            failures[seed] = failure
    return failures, happened


def test_whatever_happens_the_index_holds_what_a_sequential_reading_does() -> None:
    failures, happened = play(range(40))
    assert failures == {}
    assert set(happened) == {*FAULTS, *STORE_FAULTS}


def test_many_more_rounds_of_faults() -> None:
    assert play(range(1000, 1500))[0] == {}


def test_a_seed_gives_the_same_round_again() -> None:
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def blind_swap(place: Path, _: Stamped | None, data: bytes) -> Stamped:
    return swap(place, read_stamped(place), data)


def test_without_the_compare_and_swap_the_simulator_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "swap", blind_swap)
    assert "DifferenceError" in failure_of(1, draw(1))[0]


def test_without_syncs_a_power_cut_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (whole_files, put_segment):
        monkeypatch.setattr(module, "sync", lambda _: None)
    steps = (
        Step("build", ((1, "aspirin"), (2, "iron"))),
        Step("update", ((3, "heparin"), (2, "iron again")), "power cut", 26),
    )
    assert "CURRENT: damaged" in failure_of(0, steps)[0]


def test_a_failure_is_shrunk_to_the_steps_that_it_needs() -> None:
    steps = (
        Step("build", ((1, "aspirin"), (2, "iron"))),
        Step("compact", fault="kill", at=3),
        Step("update", ((3, "heparin"),), "disk full", 9),
        Step("verify"),
    )
    found = shrink(steps, lambda fewer: any(step.fault == "disk full" for step in fewer))
    assert found == (
        Step("build", ((2, "iron"),)),
        Step("update", ((3, "heparin"),), "disk full", 9),
    )
