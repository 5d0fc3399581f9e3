"""Faults in the processes of a served graph while callers ask it.

Each reply equals the undisturbed reply, reports what was lost, or has Retry-After, and none exceeds
its deadline. Afterwards the graph recovers.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.end_to_end.two_nodes import kill
from tests.faults.on_ray.callers import Allowed, Callers, faults_of
from tests.faults.on_ray.draw_rounds import RayRound, Strike
from tests.faults.on_ray.served_graph import SHARDS, WHOLE_S, ServedGraph
from tests.faults.on_ray.signals import stopped

# Every reply passes through these, so none can arrive while one is stopped.
ON_THE_WAY = ("gateway", "proxy")
# Seconds after the recovery in which further replies are collected.
AFTER_S = 2.0


@dataclass
class Served:
    """Result of a round on a serving graph."""

    round: RayRound
    counted: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    whole_after_s: float = 0.0
    happened: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{dict(self.counted.most_common())}, slowest {self.slowest_s:.1f} s, whole again "
            f"after {self.whole_after_s:.1f} s"
        )


@dataclass(frozen=True)
class ServingRounds:
    """Inject faults into the processes of `graph`."""

    graph: ServedGraph

    def play(self, round_: RayRound) -> Served:
        """Inject the faults of `round_` while callers ask, and check their replies."""
        served, dice = Served(round_), random.Random(round_.seed)
        callers = Callers(self.graph.url)
        with callers.asking():
            time.sleep(AFTER_S)
            begun = time.monotonic()
            for strike in round_.strikes:
                time.sleep(strike.after)
                self._strike(strike, served, dice)
            over = time.monotonic()
            lacks = self.graph.await_whole()
            ended = time.monotonic()
            time.sleep(AFTER_S)
        served.whole_after_s = ended - over
        if lacks:
            served.failures.append(f"not whole {WHOLE_S:.0f} s after the last fault: {lacks}")
        allowed = Allowed(begun, ended, *_excused(round_))
        served.failures += faults_of(callers.replies, allowed, self.graph.references)
        served.counted = callers.counted()
        served.slowest_s = max(reply.seconds for reply in callers.replies)
        return served

    def _strike(self, strike: Strike, served: Served, dice: random.Random) -> None:
        victim = f"shard {dice.randrange(SHARDS)}" if strike.victim == "shard" else strike.victim
        # A victim of an earlier fault is missing until Ray has restarted it.
        end = time.monotonic() + WHOLE_S
        while not (pids := self.graph.pids(victim)):
            assert time.monotonic() < end, f"no {victim} for {WHOLE_S:.0f} s"
            time.sleep(0.1)
        served.happened.append(f"{strike.fault} {strike.victim}")
        if strike.fault != "kill":
            with stopped(pids):
                time.sleep(strike.pause_s)
        elif strike.victim == "model":
            self.graph.model.kill()
            time.sleep(strike.pause_s)
            self.graph.model.start()
        else:
            kill(pids)


def _excused(round_: RayRound) -> tuple[float, bool]:
    """Return the seconds without replies, and whether connections may be lost."""
    on_the_way = [strike for strike in round_.strikes if strike.victim in ON_THE_WAY]
    # Serve also replaces a proxy that was stopped for long.
    proxies = [strike for strike in on_the_way if strike.victim == "proxy"]
    may_lose = any(strike.fault in ("kill", "long stop") for strike in proxies)
    return sum(strike.pause_s for strike in on_the_way), may_lose
