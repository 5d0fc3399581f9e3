"""Rounds on real processes by a seed: what runs, what strikes whom, when and for how long."""

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
# Past the lease of the index, and past what Ray waits for a node that is silent.
LONG_JOB_S = (25.0, 40.0)
# Past Serve's three failed looks at a replica, of 30 s each, or at a proxy, of 10 s each.
LONG_REPLICA_S, LONG_OTHER_S = (100.0, 115.0), (40.0, 55.0)
# Nobody waits for these with a limit: a long stop is only a longer one.
PATIENT = ("proxy", "controller", "model")


@dataclass(frozen=True)
class Strike:
    """A fault to come to `victim`: `kill` ends it, a stop holds it up for `pause_s` seconds.

    `after` is when: the share of what an undisturbed job writes, or while serving the seconds
    since the last strike was over. What is started again by hand stays away for `pause_s`.
    """

    victim: str
    fault: str
    after: float
    pause_s: float

    def __str__(self) -> str:
        told = f"{self.fault} {self.victim}"
        return f"{told} for {self.pause_s:.1f} s" if self.pause_s else told


@dataclass(frozen=True)
class RayRound:
    """`about` is a job, or serving."""

    seed: int
    about: str
    strikes: tuple[Strike, ...]

    def __str__(self) -> str:
        told = ", then ".join(f"{strike} at {strike.after:.2f}" for strike in self.strikes)
        return f"seed {self.seed} ({self.about}): {told}"


# Every way in which a round of a kind can begin: what it is about, and its first strike.
FIRST: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "index": tuple(product(JOBS, INDEX_VICTIMS, FAULTS)),
    SERVING: tuple(product((SERVING,), SERVING_VICTIMS, FAULTS)),
}


def draw_rounds(first: int, rounds: int, kinds: Sequence[str] = KINDS) -> list[RayRound]:
    """The rounds of `kinds` whose seeds come next, from seed `first` on."""
    seeds = (seed for seed in count(first) if KINDS[seed % len(KINDS)] in kinds)
    return [draw_round(seed) for seed in islice(seeds, rounds)]


def draw_round(seed: int) -> RayRound:
    """The round of `seed`: kinds take turns, and each meets all that it can begin with in turn."""
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
    """When it comes, and for how long."""
    limits = SHORT_S
    if fault == "long stop":
        serving = LONG_OTHER_S if victim in PATIENT else LONG_REPLICA_S
        limits = serving if about == SERVING else LONG_JOB_S
    pause_s = round(dice.uniform(*limits), 1)
    after = round(dice.uniform(0.5, 4.0) if about == SERVING else dice.random(), 3)
    stays_away = fault != "kill" or victim == "model"
    return Strike(victim, fault, after, pause_s if stays_away else 0.0)
