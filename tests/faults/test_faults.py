"""Selected rounds of the fault simulator; `python -m tests.faults` plays any number."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import pytest

from tests.faults.rounds import ALL_FAULTS, draw, failure_of, kind_of

# Turns that together cover every fault of each kind.
SLICE = {
    "index in a folder": range(8),
    "index in a store": range(2, 9),
    "watches": range(11),
    "batches": range(17),
    "downloads": range(5, 16),
    "downloads to a store": range(9),
}


def seeds_of(kind: str, turns: range) -> list[int]:
    every = (seed for seed in itertools.count() if kind_of(seed) == kind)
    return list(islice(every, turns.start, turns.stop))


def play(seeds: Iterable[int]) -> tuple[dict[int, str], Counter[str]]:
    failures, happened = {}, Counter[str]()
    for seed in seeds:
        failure, fired = failure_of(seed, draw(seed))
        happened.update(fired)
        if failure:
            failures[seed] = f"{kind_of(seed)}: {failure}"
    return failures, happened


@pytest.mark.durability
@pytest.mark.nightly
def test_rounds_with_every_fault_match_a_sequential_reading() -> None:
    failures, happened = play(seed for kind in SLICE for seed in seeds_of(kind, SLICE[kind]))
    assert failures == {}
    assert set(happened) == ALL_FAULTS


@pytest.mark.nightly
def test_many_random_rounds_match_a_sequential_reading() -> None:
    assert play(range(1000, 1500))[0] == {}
