"""A few seeded rounds of struck jobs; `python -m tests.faults --on-ray` plays any number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.faults.on_ray.draw_rounds import RayRound, Strike
from tests.faults.on_ray.job_rounds import JobRounds, job_rounds

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

# Jobs with what strikes them, when, and for how many seconds. CI plays IN_CI, in which every job
# and every kind of victim occurs; the nightly run plays OTHERS as well.
IN_CI = (
    ("build", Strike("driver", "kill", 0.6, 0.0)),
    ("build", Strike("node", "kill", 0.5, 0.0)),
    ("update", Strike("worker", "kill", 0.4, 0.0)),
    ("compact", Strike("worker", "kill", 0.2, 0.0)),
)
OTHERS = (
    ("update", Strike("driver", "kill", 0.3, 0.0)),
    ("update", Strike("driver", "long stop", 0.5, 40.0)),
    ("build", Strike("worker", "stop", 0.5, 3.0)),
)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[JobRounds]:
    with job_rounds(tmp_path_factory.mktemp("crashes"), encoder, per_file=300) as rounds:
        yield rounds


def play(rounds: Sequence[tuple[str, Strike]], jobs: JobRounds, subtests: pytest.Subtests) -> None:
    """Play `rounds`; each job must end as an undisturbed one, and readers see whole versions."""
    for number, (job, strike) in enumerate(rounds):
        with subtests.test(job=job, strike=strike):
            done = jobs.play(RayRound(number, job, (strike,)))
            assert done.failures == []
            assert done.watch.opened > 0
            assert done.survived or strike.victim == "driver"


@pytest.mark.durability
def test_a_struck_job_ends_as_an_undisturbed_one_and_readers_see_whole_versions(
    jobs: JobRounds, subtests: pytest.Subtests
) -> None:
    play(IN_CI, jobs, subtests)


def test_other_struck_jobs_end_undisturbed(jobs: JobRounds, subtests: pytest.Subtests) -> None:
    play(OTHERS, jobs, subtests)
