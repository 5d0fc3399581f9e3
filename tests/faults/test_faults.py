"""A slice of the simulator of faults; `python -m tests.faults` plays as many rounds as you like."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import pytest

from tests.faults.rounds import ALL_FAULTS, KINDS, ORDER, draw, failure_of, kind_of
from tests.faults.steps import Step, shrink

# Of each kind the rounds of these turns: between them they have met every fault.
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
def test_whatever_happens_what_is_kept_is_what_a_sequential_reading_holds() -> None:
    failures, happened = play(seed for kind in SLICE for seed in seeds_of(kind, SLICE[kind]))
    assert failures == {}
    assert set(happened) == ALL_FAULTS


@pytest.mark.nightly
def test_many_more_rounds_of_faults() -> None:
    assert play(range(1000, 1500))[0] == {}


def test_every_kind_of_round_has_its_turn() -> None:
    assert set(ORDER) == set(KINDS) == set(SLICE)


def test_a_seed_gives_the_same_round_again() -> None:
    assert draw(7) == draw(7)
    assert draw(0) != draw(len(ORDER))


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
