"""A few seeded rounds of struck jobs; `python -m tests.faults --on-ray` plays any number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.on_ray.draw_rounds import RayRound, Strike
from tests.faults.on_ray.job_rounds import JobRounds, job_rounds

pytestmark = [pytest.mark.durability, pytest.mark.ray, pytest.mark.nightly]

# What strikes which job, when, and for how many seconds.
JOBS = (
    ("build", Strike("driver", "kill", 0.6, 0.0)),
    ("build", Strike("node", "kill", 0.5, 0.0)),
    ("update", Strike("driver", "kill", 0.3, 0.0)),
    ("update", Strike("worker", "kill", 0.4, 0.0)),
    ("compact", Strike("worker", "kill", 0.2, 0.0)),
    ("update", Strike("driver", "long stop", 0.5, 40.0)),
    ("build", Strike("worker", "stop", 0.5, 3.0)),
)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[JobRounds]:
    with job_rounds(tmp_path_factory.mktemp("crashes"), encoder, per_file=300) as rounds:
        yield rounds


def test_a_struck_job_ends_as_an_undisturbed_one_and_readers_see_whole_versions(
    jobs: JobRounds, subtests: pytest.Subtests
) -> None:
    for number in range(len(JOBS)):
        with subtests.test(number=number):
            job, strike = JOBS[number]
            done = jobs.play(RayRound(number, job, (strike,)))
            assert done.failures == []
            assert done.watch.opened > 0
            assert done.survived or strike.victim == "driver"
