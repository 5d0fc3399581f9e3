"""Builds and updates that lose a worker node, or its network, at each stage."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.index_jobs import SHARDS, Jobs, write_corpus
from tests.end_to_end.several_nodes.pods import Pod, Pods, await_that, pods
from tests.end_to_end.watched_index import Watch

pytestmark = [pytest.mark.durability, pytest.mark.ray, pytest.mark.nightly]

# What appears in the index when a stage has begun, and how many of it.
STAGES = {
    "embed": ("staging/*/*/part-*", 1),
    "shards": ("segments/*/.*.partial", 1),
    "publish": ("segments/*/[!.]*", SHARDS),
}
ROUNDS = (("build", "shards", "cut"), ("update", "embed", "kill"))
if os.environ.get("CITERAY_EVERY_LOSS"):
    ROUNDS = tuple(itertools.product(("build", "update"), STAGES, ("kill", "cut")))


@dataclass(frozen=True)
class Nodes:
    pods: Pods
    jobs: Jobs

    def harm(self, harm: str, victim: Pod) -> None:
        """A node whose network is cut works on, and is back once Ray has given it up."""
        if harm == "kill":
            victim.kill()
            return
        lost = self.pods.lost()
        victim.cut()
        await_that(lambda: self.pods.lost() > lost, self.jobs.said)
        victim.mend()

    def round(self, index: Path, job: str, stage: str, harm: str, seed: str) -> list[str]:
        """What is wrong with what comes out where a node is lost at that stage."""
        chance, (pattern, more) = random.Random(seed), STAGES[stage]
        reference = self.jobs.reference("build")
        shutil.copytree(self.jobs.before(job), index)
        self.pods.require_workers()
        more += len(list(index.glob(pattern)))
        victim = chance.choice(self.pods.workers)
        failures: list[str] = []
        with Watch(index) as watch:
            driver = self.jobs.start(self.jobs.command(job, index))
            await_that(lambda: len(list(index.glob(pattern))) >= more, self.jobs.said)
            time.sleep(chance.random() * 0.2)
            self.harm(harm, victim)
            ended = self.jobs.ends_well(driver, failures)
            # One that is back learns that it was given up, and ends.
            await_that(lambda: not victim.runs())
        assert ended, failures or self.jobs.said()
        return [*failures, *watch.problems, *self.jobs.faults(index, reference)]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("pods")
    with pods({}) as found:
        corpus = write_corpus(folder / "pubmed", per_file=120)
        yield Nodes(found, Jobs(folder, encoder, corpus, found.driver, inside=found.head.inside))


@pytest.mark.parametrize(("job", "stage", "harm"), ROUNDS)
def test_a_job_that_loses_a_node_ends_as_an_undisturbed_one(
    nodes: Nodes, tmp_path: Path, job: str, stage: str, harm: str
) -> None:
    assert nodes.round(tmp_path / "index", job, stage, harm, f"{job} {stage} {harm}") == []
