"""Builds, updates and compactions on two Ray nodes, struck while they run, and what must then hold.

A reader opens the published version over and over meanwhile. A command that was killed, or that
ended by itself with one sentence, is run again until it is done. Then what is live is what an
undisturbed run gives, and nothing else is left.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cluster.index.manifest import read_manifest
from pipelines.verify.verify_index import verify_index
from tests.end_to_end.index_jobs import DEADLINE_S, Jobs, write_corpus
from tests.end_to_end.two_nodes import TwoNodes, kill, two_nodes
from tests.end_to_end.watched_index import LOOK_EVERY_S, Watch
from tests.faults.on_ray.draw_rounds import RayRound, Strike
from tests.faults.on_ray.short_lease import LEASE_S
from tests.faults.on_ray.signals import stopped

# Room for two commands at once: one that is stopped keeps what it had.
CPUS = 4
RERUNS = 3
# Ray gives up a node that is silent for some 15 s; by default it takes over a minute.
GIVEN_UP_SOON = {
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "5",
}
PROGRAM = "tests.faults.on_ray.short_lease"
SECOND_LOG = "second-command.log"


@dataclass
class Struck:
    """A job that was struck, and run again until it was done."""

    round: RayRound
    index: Path
    watch: Watch
    driver: subprocess.Popen
    command: list[str]
    reruns: int = 0
    done: bool = False
    killed: bool = False
    leftovers: int = 0
    overtaken: str = ""
    happened: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def survived(self) -> bool:
        """Whether it was done without being run again."""
        return not self.reruns

    def __str__(self) -> str:
        watch = self.watch
        return (
            f"run again {self.reruns} times, {watch.staged_twice} staged twice, "
            f"{watch.opened} versions opened{self.overtaken}"
        )


@dataclass(frozen=True)
class JobRounds:
    """Runs jobs on `nodes`, and strikes in the midst of them."""

    jobs: Jobs
    nodes: TwoNodes

    def play(self, round_: RayRound) -> Struck:
        """Strike as drawn, and end what was begun."""
        reference = self.jobs.reference(round_.about)
        self.nodes.require_second()
        index = self.jobs.folder / f"round-{round_.seed}"
        shutil.rmtree(index, ignore_errors=True)
        shutil.copytree(reference.before, index)
        command = self.jobs.command(round_.about, index)
        dice = random.Random(round_.seed)
        with Watch(index) as watch:
            struck = Struck(round_, index, watch, self.jobs.start(command), command)
            for strike in round_.strikes:
                self._await_moment(struck, strike.after * reference.paths, dice.random() * 0.2)
                self._strike(struck, strike, dice)
            self._end(struck)
        struck.failures += watch.problems[:3]
        struck.failures += self.jobs.faults(index, reference)
        struck.failures += self._costs(struck)
        struck.leftovers = len(verify_index(index).leftovers)
        if not struck.failures:
            shutil.rmtree(index)
        return struck

    def _await_moment(self, struck: Struck, paths: float, delay: float) -> None:
        begun = time.monotonic()
        while len(struck.watch.paths) < paths and struck.driver.poll() is None:
            assert time.monotonic() - begun < DEADLINE_S, self.jobs.said()
            time.sleep(LOOK_EVERY_S)
        time.sleep(delay)

    def _strike(self, struck: Struck, strike: Strike, dice: random.Random) -> None:
        if struck.driver.poll() is not None:
            self._end_run(struck)
        if struck.done:
            return
        if struck.driver.poll() is not None:
            self._run_again(struck)
        struck.happened.append(f"{strike.fault} {strike.victim}")
        if strike.fault == "kill":
            self._kill(struck, strike, dice)
        elif strike.victim == "driver" and strike.fault == "long stop":
            self._overtake(struck, strike)
        else:
            with stopped(self._pids(struck, strike, dice)):
                time.sleep(strike.pause_s)

    def _kill(self, struck: Struck, strike: Strike, dice: random.Random) -> None:
        if strike.victim == "driver":
            struck.driver.kill()
            struck.killed = True
        elif strike.victim == "node":
            self.nodes.lose_second()
        else:
            kill(self._pids(struck, strike, dice))

    def _pids(self, struck: Struck, strike: Strike, dice: random.Random) -> list[int]:
        if strike.victim == "driver":
            return [struck.driver.pid]
        if strike.victim == "node":
            return self.nodes.second()
        while not (found := self.nodes.workers()) and struck.driver.poll() is None:
            time.sleep(LOOK_EVERY_S)
        return dice.sample(sorted(found), 1) if found else []

    def _overtake(self, struck: Struck, strike: Strike) -> None:
        """Another takes the stopped command's place; both go on at once where it is not done."""
        resumes = time.monotonic() + strike.pause_s
        with stopped([struck.driver.pid]):
            time.sleep(LEASE_S + 1)
            other = self.jobs.start(struck.command, SECOND_LOG)
            while other.poll() is None and time.monotonic() < resumes:
                time.sleep(LOOK_EVERY_S)
        struck.done |= self.jobs.ends_well(other, struck.failures, SECOND_LOG)
        before = read_manifest(self.jobs.reference(struck.round.about).before).version
        self._end_run(struck)
        struck.overtaken = f", exit codes {struck.driver.returncode} and {other.returncode}"
        # Each would have made the same of the same sources: two versions are one too many.
        if len(published := {*struck.watch.versions} - {before}) > 1:
            struck.failures.append(f"both commands published: {sorted(published)}")

    def _end_run(self, struck: Struck) -> None:
        """Wait for the command; `done` where it has ended well, or had before."""
        if struck.killed:
            struck.done |= struck.driver.wait() == 0
            struck.killed = False
        else:
            struck.done |= self.jobs.ends_well(struck.driver, struck.failures)

    def _run_again(self, struck: Struck) -> None:
        self.nodes.require_second()
        struck.reruns += 1
        struck.driver = self.jobs.start(struck.command)

    def _end(self, struck: Struck) -> None:
        self._end_run(struck)
        while not struck.done and struck.reruns < RERUNS:
            self._run_again(struck)
            self._end_run(struck)

    def _costs(self, struck: Struck) -> Iterator[str]:
        """What a round may not cost."""
        if not struck.done:
            yield f"not done after {struck.reruns} reruns"
        driver_lost = {"kill driver", "long stop driver"} & {*struck.happened}
        if not struck.survived and not driver_lost:
            yield f"the run ended with its {struck.happened}: {self.jobs.said()[-500:]}"
        if not struck.watch.opened:
            yield "no version was opened meanwhile"


@contextmanager
def job_rounds(folder: Path, encoder: Path, per_file: int = 600) -> Iterator[JobRounds]:
    """Rounds on two nodes, which give each other up soon, with a lease that ends soon."""
    with two_nodes(CPUS, GIVEN_UP_SOON) as nodes:
        corpus = write_corpus(folder / "pubmed", per_file=per_file)
        yield JobRounds(Jobs(folder, encoder, corpus, nodes.driver, program=PROGRAM), nodes)
