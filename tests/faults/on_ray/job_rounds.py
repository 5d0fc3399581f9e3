"""Interrupt builds, updates and compactions on two Ray nodes and check the result.

Meanwhile a reader opens the published version repeatedly. A command that was killed, or that failed
with a one-line error, is run again until it succeeds. The live contents must then equal those of an
undisturbed run, and no temporary file may be left.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from cluster.index.manifest import read_manifest
from tests.end_to_end.index_jobs import Jobs
from tests.end_to_end.two_nodes import TwoNodes, kill, two_nodes
from tests.end_to_end.waiting import await_that
from tests.end_to_end.watched_index import LOOK_EVERY_S, Watch, watching
from tests.faults.on_ray.draw_rounds import RayRound, Strike
from tests.faults.on_ray.short_lease import LEASE_S
from tests.faults.on_ray.signals import stopped

# CPUs for two commands at once, because a stopped command keeps its own.
CPUS = 4
RERUNS = 3
# Ray declares a node dead after about 15 s of silence; by default it takes over a minute.
GIVEN_UP_SOON = {
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "5",
}
PROGRAM = "tests.faults.on_ray.short_lease"
SECOND_LOG = "second-command.log"


@dataclass
class Struck:
    """A job that was interrupted, and run again until it succeeded."""

    round: RayRound
    index: Path
    watch: Watch
    driver: subprocess.Popen
    command: list[str]
    reruns: int = 0
    done: bool = False
    killed: bool = False
    overtaken: str = ""
    happened: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.reruns} reruns, {self.watch.opened} versions opened{self.overtaken}"


@dataclass(frozen=True)
class JobRounds:
    """Run jobs on `nodes` and interrupt them."""

    jobs: Jobs
    nodes: TwoNodes

    def play(self, round_: RayRound) -> Struck:
        """Interrupt a job as `round_` says, run it to its end, and collect the failures."""
        reference = self.jobs.reference(round_.about)
        self.nodes.require_second()
        index = self.jobs.folder / f"round-{round_.seed}"
        shutil.rmtree(index, ignore_errors=True)
        shutil.copytree(self.jobs.before(round_.about), index)
        command = self.jobs.command(round_.about, index)
        dice = random.Random(round_.seed)
        with watching(index) as watch:
            struck = Struck(round_, index, watch, self.jobs.start(command), command)
            for strike in round_.strikes:
                self._require_running(struck)
                self._await_moment(struck, strike.after * reference.paths, dice.random() * 0.2)
                self._require_running(struck)
                if not struck.done:
                    self._strike(struck, strike, dice)
            self._end(struck)
        struck.failures += watch.problems[:3]
        struck.failures += self.jobs.faults(index, reference)
        struck.failures += self._costs(struck)
        if not struck.failures:
            shutil.rmtree(index)
        return struck

    def _require_running(self, struck: Struck) -> None:
        """Run the command again if it was killed or failed."""
        if struck.killed or struck.driver.poll() is not None:
            self._end_run(struck)
            if not struck.done:
                self._run_again(struck)

    def _await_moment(self, struck: Struck, paths: float, delay: float) -> None:
        def due() -> bool:
            return len(struck.watch.paths) >= paths or struck.driver.poll() is not None

        await_that(due, self.jobs.said, every_s=LOOK_EVERY_S)
        time.sleep(delay)

    def _strike(self, struck: Struck, strike: Strike, dice: random.Random) -> None:
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
        """Stop the driver past its lease, start the same command again, then resume the first."""
        resumes = time.monotonic() + strike.pause_s
        with stopped([struck.driver.pid]):
            time.sleep(LEASE_S + 1)
            other = self.jobs.start(struck.command, SECOND_LOG)
            while other.poll() is None and time.monotonic() < resumes:
                time.sleep(LOOK_EVERY_S)
        struck.done |= self.jobs.ends_well(other, struck.failures, SECOND_LOG)
        before = read_manifest(self.jobs.before(struck.round.about)).version
        self._end_run(struck)
        struck.overtaken = f", exit codes {struck.driver.returncode} and {other.returncode}"
        # Both commands have the same sources, so only one may publish a version.
        if len(published := {*struck.watch.versions} - {before}) > 1:
            struck.failures.append(f"both commands published: {sorted(published)}")

    def _end_run(self, struck: Struck) -> None:
        """Wait for the end of the command and note whether it succeeded."""
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
        """Yield a message for each expectation of an interrupted job that is not met."""
        if not struck.done:
            yield f"not done after {struck.reruns} reruns"
        driver_lost = {"kill driver", "long stop driver"} & {*struck.happened}
        if struck.reruns and not driver_lost:
            yield f"the run ended with its {struck.happened}: {self.jobs.said()[-500:]}"
        if not struck.watch.opened:
            yield "no version was opened meanwhile"


@contextmanager
def job_rounds(jobs: Jobs) -> Iterator[JobRounds]:
    """Yield rounds of `jobs` on two nodes with short health checks and a short lease."""
    with two_nodes(CPUS, GIVEN_UP_SOON) as nodes:
        yield JobRounds(replace(jobs, driver=nodes.driver, program=PROGRAM), nodes)
