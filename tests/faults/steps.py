"""Steps of a round, how a seed draws them, and how a failing round is shrunk."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Step:
    """An operation, its input, and a fault at moment number `at`.

    `events` are the records of a file, the questions of a batch, the evidence of a version or
    the files of a server. `others` are the events of a concurrent process.
    """

    operation: str
    events: tuple[Any, ...] = ()
    fault: str = ""
    at: int = 0
    others: tuple[Any, ...] = ()

    def __str__(self) -> str:
        events = f" of {list(self.events)}" if self.events else ""
        return f"{self.operation}{events}" + (f", {self.fault} at {self.at}" if self.fault else "")


class DifferenceError(AssertionError):
    """The stored data differs from the expected data."""


class Draw:
    """Draw steps whose `faults` occur among the first `most` moments of an operation.

    `turn` determines the first fault, which comes with the second step at the latest, so that a few
    rounds cover every fault.
    """

    def __init__(self, dice: random.Random, turn: int, faults: Sequence[str], most: int) -> None:
        self.dice, self._faults, self._most = dice, faults, most
        self._first = faults[turn % len(faults)]
        self._asked = False

    def fault(self, faults: Sequence[str] = ()) -> str:
        """Draw a fault or "", from `faults` if not every fault can happen."""
        may = faults or self._faults
        first = self._first if self._first in may else ""
        sure, self._asked = self._asked and first, True
        if self.dice.random() >= 0.6 and not sure:
            return ""
        if first:
            self._first = ""
        return first or self.dice.choice(may)

    def step(
        self,
        operation: str,
        events: tuple[Any, ...] = (),
        fault: str = "",
        others: tuple[Any, ...] = (),
        most: int = 0,
    ) -> Step:
        return Step(operation, events, fault, self.dice.randint(1, most or self._most), others)


def shrink(steps: Sequence[Step], fails: Callable[[Sequence[Step]], bool]) -> tuple[Step, ...]:
    """Return a smaller round that still fails: fewer steps, faults and events."""
    found = tuple(steps)
    while True:
        for less in _smaller(found):
            if fails(less):
                found = less
                break
        else:
            return found


def _smaller(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    for position in range(len(steps) - 1, 0, -1):
        yield steps[:position] + steps[position + 1 :]
    for position, step in enumerate(steps):
        if step.fault:
            yield (*steps[:position], replace(step, fault="", at=0), *steps[position + 1 :])
        for event in range(len(step.events)):
            fewer = step.events[:event] + step.events[event + 1 :]
            if fewer:
                yield (*steps[:position], replace(step, events=fewer), *steps[position + 1 :])
