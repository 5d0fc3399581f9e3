"""Five seeded rounds of kill -9; `python -m tests.bench.bench_crash` runs as many as you like."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.crashes import Bench
from tests.end_to_end.index_jobs import Jobs, write_corpus
from tests.end_to_end.two_nodes import two_nodes

ROUNDS = (
    ("build", "driver"),
    ("build", "node"),
    ("update", "driver"),
    ("update", "worker"),
    ("compact", "worker"),
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("crashes")
    with two_nodes() as nodes:
        corpus = write_corpus(folder / "pubmed", per_file=300)
        yield Bench(Jobs(folder, encoder, corpus, nodes.driver), nodes)


@pytest.mark.parametrize(("job", "victim"), ROUNDS)
def test_a_killed_job_ends_as_an_uninterrupted_one_and_readers_see_whole_versions(
    bench: Bench, job: str, victim: str
) -> None:
    number = ROUNDS.index((job, victim))
    done = bench.round(number, job, victim, random.Random(number))
    assert done.failures == ()
    assert done.opened > 0
    assert done.survived or victim == "driver"
