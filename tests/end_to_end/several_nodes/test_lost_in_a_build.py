"""Builds and updates that lose a worker node, or its network, at each stage."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.end_to_end.index_jobs import SHARDS, Jobs
from tests.end_to_end.several_nodes.pods import SHARED_MODELS, Pod, Pods, pods
from tests.end_to_end.waiting import await_that
from tests.end_to_end.watched_index import watching

pytestmark = [pytest.mark.durability, pytest.mark.ray, pytest.mark.nightly]

# For each stage, the files that appear in the index once it has started, and how many of them.
STAGES = {
    "embed": ("staging/*/*/part-*", 1),
    "shards": ("segments/*/.*.partial", 1),
    "publish": ("segments/*/[!.]*", SHARDS),
}
Losses = tuple[tuple[str, str], ...]
ROUNDS: tuple[tuple[str, Losses], ...] = (("build", (("embed", "kill"), ("shards", "cut"))),)
if os.environ.get("CITERAY_EVERY_LOSS"):
    every = itertools.product(("build", "update"), STAGES, ("kill", "cut"))
    ROUNDS = tuple((job, ((stage, harm),)) for job, stage, harm in every)


def count(index: Path, stage: str) -> int:
    return len(list(index.glob(STAGES[stage][0])))


@dataclass(frozen=True)
class Nodes:
    pods: Pods
    jobs: Jobs

    def harm(self, harm: str, victim: Pod) -> None:
        """Kill the node, or cut its network until Ray has declared it dead."""
        if harm == "kill":
            victim.kill()
            # The replacement node joins while the job continues.
            self.pods.start_worker(victim)
            return
        lost = self.pods.lost()
        victim.cut()
        await_that(lambda: self.pods.lost() > lost, self.jobs.said)
        victim.mend()
        # A node that returns after it was declared dead stops by itself.
        await_that(lambda: not victim.runs())

    def round(self, index: Path, job: str, losses: Losses) -> list[str]:
        """Return the failures of a job that loses its nodes one after another."""
        chance = random.Random(f"{job} {losses}")
        reference = self.jobs.reference("build")
        shutil.copytree(self.jobs.before(job), index)
        self.pods.require_workers()
        before = {stage: count(index, stage) for stage in STAGES}
        victims = chance.sample(self.pods.workers, len(losses))
        failures: list[str] = []
        with watching(index) as watch:
            driver = self.jobs.start(self.jobs.command(job, index))
            for (stage, harm), victim in zip(losses, victims, strict=True):
                wanted = before[stage] + STAGES[stage][1]
                await_that(lambda s=stage, n=wanted: count(index, s) >= n, self.jobs.said)
                time.sleep(chance.random() * 0.2)
                self.harm(harm, victim)
            ended = self.jobs.ends_well(driver, failures)
        assert ended, failures or self.jobs.said()
        return [*failures, *watch.problems, *self.jobs.faults(index, reference)]


@pytest.fixture(scope="module")
def nodes(jobs: Jobs) -> Iterator[Nodes]:
    with pods(SHARED_MODELS) as found:
        yield Nodes(found, replace(jobs, driver=found.driver, inside=found.head.inside))


@pytest.mark.parametrize(("job", "losses"), ROUNDS)
def test_job_that_loses_nodes_gives_the_undisturbed_result(
    nodes: Nodes, tmp_path: Path, job: str, losses: Losses
) -> None:
    assert nodes.round(tmp_path / "index", job, losses) == []
