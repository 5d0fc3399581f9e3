"""Rounds on real processes by seed: the job, its victim, and the fault's kind, time and length."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice, product

JOBS = ("build", "update", "compact")
INDEX_VICTIMS = ("driver", "worker", "node")
SERVING_VICTIMS = (
    *("gateway", "proxy", "encoder", "shard", "expander", "writer", "controller", "model"),
)
SERVING = "serving"
KINDS = ("index", SERVING)
FAULTS = ("kill", "stop", "long stop")
SHORT_S = (0.5, 8.0)
# Longer than the lease of the index and than Ray's health checks of a node.
LONG_JOB_S = (25.0, 40.0)
# Longer than three failed health checks of a replica (30 s each) or of a proxy (10 s each).
LONG_REPLICA_S, LONG_OTHER_S = (100.0, 115.0), (40.0, 55.0)
# These have no health check that fails only after LONG_OTHER_S.
PATIENT = ("proxy", "controller", "model")


@dataclass(frozen=True)
class Strike:
    """A fault of `victim`: `kill` ends it, a stop suspends it for `pause_s` seconds.

    `after` is its time: the share of the files that an undisturbed job writes or, while serving,
    the seconds since the last fault ended. The model process restarts after `pause_s`.
    """

    victim: str
    fault: str
    after: float
    pause_s: float

    def __str__(self) -> str:
        text = f"{self.fault} {self.victim}"
        return f"{text} for {self.pause_s:.1f} s" if self.pause_s else text


@dataclass(frozen=True)
class RayRound:
    """A job, or serving, and the faults that hit it."""

    seed: int
    about: str
    strikes: tuple[Strike, ...]

    def __str__(self) -> str:
        text = ", then ".join(f"{strike} at {strike.after:.2f}" for strike in self.strikes)
        return f"seed {self.seed} ({self.about}): {text}"


# Every combination of job, victim and fault with which a round of a kind can begin.
FIRST: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "index": tuple(product(JOBS, INDEX_VICTIMS, FAULTS)),
    SERVING: tuple(product((SERVING,), SERVING_VICTIMS, FAULTS)),
}


def draw_rounds(first: int, rounds: int, kinds: Sequence[str] = KINDS) -> list[RayRound]:
    """Return the next rounds of `kinds` from seed `first` on."""
    seeds = (seed for seed in count(first) if KINDS[seed % len(KINDS)] in kinds)
    return [draw_round(seed) for seed in islice(seeds, rounds)]


def draw_round(seed: int) -> RayRound:
    """Return the round of `seed`. Kinds alternate, and each takes its beginnings in turn."""
    turn, place = divmod(seed, len(KINDS))
    begins = FIRST[KINDS[place]]
    cycle, turn = divmod(turn, len(begins))
    order = random.Random(f"{KINDS[place]} {cycle}").sample(begins, len(begins))
    about, victim, fault = order[turn]
    dice = random.Random(seed)
    strikes = [draw_strike(dice, about, victim, fault)]
    if dice.random() < 0.3:
        victims = SERVING_VICTIMS if about == SERVING else INDEX_VICTIMS
        strikes.append(draw_strike(dice, about, dice.choice(victims), dice.choice(FAULTS[:2])))
    if about != SERVING:
        strikes.sort(key=lambda strike: strike.after)
    return RayRound(seed, about, tuple(strikes))


def draw_strike(dice: random.Random, about: str, victim: str, fault: str) -> Strike:
    """Draw the time and the length of a fault."""
    limits = SHORT_S
    if fault == "long stop":
        serving = LONG_OTHER_S if victim in PATIENT else LONG_REPLICA_S
        limits = serving if about == SERVING else LONG_JOB_S
    pause_s = round(dice.uniform(*limits), 1)
    after = round(dice.uniform(0.5, 4.0) if about == SERVING else dice.random(), 3)
    stays_away = fault != "kill" or victim == "model"
    return Strike(victim, fault, after, pause_s if stays_away else 0.0)
