"""A few rounds of interrupted jobs; `python -m tests.faults --on-ray` plays any number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cluster.index.layout import CITATIONS, PASSAGES, VECTORS
from tests.end_to_end.index_jobs import Jobs
from tests.faults.on_ray.draw_rounds import RayRound, Strike
from tests.faults.on_ray.job_rounds import JobRounds, job_rounds

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

# Jobs, and the faults that hit each of them. CI plays IN_CI, which has every job and every kind of
# victim; the nightly run plays OTHERS as well.
IN_CI = (
    ("build", (Strike("driver", "kill", 0.6, 0.0), Strike("worker", "kill", 0.7, 0.0))),
    ("update", (Strike("node", "kill", 0.7, 0.0),)),
    ("compact", (Strike("worker", "kill", 0.2, 0.0),)),
)
OTHERS = (
    ("update", (Strike("driver", "kill", 0.3, 0.0),)),
    ("update", (Strike("driver", "long stop", 0.5, 40.0),)),
    ("build", (Strike("worker", "stop", 0.5, 3.0),)),
)


@pytest.fixture(scope="module")
def rounds(jobs: Jobs) -> Iterator[JobRounds]:
    with job_rounds(jobs) as found:
        yield found


def play(
    faults: Sequence[tuple[str, tuple[Strike, ...]]], rounds: JobRounds, subtests: pytest.Subtests
) -> None:
    """Play each round. A job is run again only after its driver was lost."""
    for number, (job, strikes) in enumerate(faults):
        with subtests.test(job=job, strikes=strikes):
            done = rounds.play(RayRound(number, job, strikes))
            assert done.failures == []
            assert done.watch.opened > 0
            assert done.happened == [f"{strike.fault} {strike.victim}" for strike in strikes]
            assert done.reruns <= sum(strike.victim == "driver" for strike in strikes)


@pytest.mark.durability
def test_interrupted_jobs_give_the_undisturbed_result_and_readers_see_whole_versions(
    rounds: JobRounds, subtests: pytest.Subtests
) -> None:
    play(IN_CI, rounds, subtests)


@pytest.mark.durability
def test_driver_opens_no_text_and_no_vector_of_a_segment(rounds: JobRounds) -> None:
    """The segments of all of PubMed would not fit in the memory of the driver's node."""
    rounds.jobs.reference("update")
    opened = rounds.jobs.opened
    assert any("pyarrow" in name for name in opened), "the driver was not observed"
    in_segments = {Path(name) for name in opened if f"{rounds.jobs.folder}/" in name}
    assert [p for p in in_segments if p.name in {CITATIONS, PASSAGES, VECTORS}] == []


def test_other_interrupted_jobs_give_the_undisturbed_result(
    rounds: JobRounds, subtests: pytest.Subtests
) -> None:
    play(OTHERS, rounds, subtests)
