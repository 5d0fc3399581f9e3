"""Commands that are killed with -9 at a seeded moment, run again, and what must then hold."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pipelines.verify.verify_index import verify_index
from tests.end_to_end.index_jobs import DEADLINE_S, Jobs
from tests.end_to_end.two_nodes import TwoNodes, kill
from tests.end_to_end.watched_index import LOOK_EVERY_S, Watch

JOBS = ("build", "update", "compact")
VICTIMS = ("driver", "worker", "node")


@dataclass(frozen=True)
class Round:
    """One job, killed once and run again until it was done."""

    number: int
    job: str
    victim: str
    survived: bool
    reruns: int
    staged_twice: int
    opened: int
    leftovers: int
    failures: tuple[str, ...]


@dataclass(frozen=True)
class Bench:
    """Runs jobs on `nodes`, and kills in the midst of them."""

    jobs: Jobs
    nodes: TwoNodes

    def round(self, number: int, job: str, victim: str, chance: random.Random) -> Round:
        """Kill `victim` during `job` at a moment that `chance` gives, and end what it began."""
        reference = self.jobs.reference(job)
        self.nodes.require_second()
        index = Path(shutil.copytree(reference.before, self.jobs.folder / f"round-{number}"))
        command = self.jobs.command(job, index)
        moment, delay = chance.randrange(reference.paths), chance.random() * 0.2
        failures: list[str] = []
        reruns = 0
        with Watch(index) as watch:
            driver = self.jobs.start(command)
            self._await_moment(driver, watch, moment, delay)
            survived = self._strike(victim, driver, chance, failures)
            while not survived and reruns < 3:
                self.nodes.require_second()
                reruns += 1
                survived = self.jobs.ends_well(self.jobs.start(command), failures)
        failures += watch.problems[:3]
        failures += self.jobs.faults(index, reference)
        left = len(verify_index(index).leftovers)
        if not failures:
            shutil.rmtree(index)
        return Round(
            number,
            job,
            victim,
            survived=not reruns,
            reruns=reruns,
            staged_twice=watch.staged_twice,
            opened=watch.opened,
            leftovers=left,
            failures=tuple(failures),
        )

    def _await_moment(
        self, driver: subprocess.Popen, watch: Watch, moment: int, delay: float
    ) -> None:
        begun = time.monotonic()
        while len(watch.paths) < moment and driver.poll() is None:
            assert time.monotonic() - begun < DEADLINE_S, self.jobs.said()
            time.sleep(LOOK_EVERY_S)
        time.sleep(delay)

    def _strike(
        self,
        victim: str,
        driver: subprocess.Popen,
        chance: random.Random,
        failures: list[str],
    ) -> bool:
        """Kill it; whether the run ended well all the same."""
        if victim == "driver":
            driver.kill()
            return driver.wait() == 0
        if victim == "node":
            self.nodes.lose_second()
        else:
            while not (found := self.nodes.workers()) and driver.poll() is None:
                time.sleep(LOOK_EVERY_S)
            kill(chance.sample(sorted(found), 1) if found else [])
        return self.jobs.ends_well(driver, failures)


@lru_cache(maxsize=1)
def plan_of(seed: int, rounds: int) -> tuple[tuple[str, str], ...]:
    """Job and victim of each round: every pair as often as any other, in a seeded order."""
    pairs = [(job, victim) for victim in VICTIMS for job in JOBS]
    chance = random.Random(seed)
    chosen: list[tuple[str, str]] = []
    while len(chosen) < rounds:
        chosen += chance.sample(pairs, len(pairs))
    return tuple(chosen[:rounds])
