"""A few seeded rounds on Ray; `python -m tests.faults --on-ray` plays as many as you like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.on_ray.draw_rounds import RayRound, Strike
from tests.faults.on_ray.job_rounds import JobRounds, job_rounds
from tests.faults.on_ray.play_rounds import serving_rounds
from tests.faults.on_ray.serving_rounds import ServingRounds

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
SERVING = (
    *(Strike(victim, "kill", 1.0, 0.0) for victim in ("gateway", "proxy", "controller")),
    *(Strike(victim, "stop", 1.0, 4.0) for victim in ("encoder", "shard", "gateway")),
)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[JobRounds]:
    with job_rounds(tmp_path_factory.mktemp("crashes"), encoder, per_file=300) as rounds:
        yield rounds


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[ServingRounds]:
    with serving_rounds(tmp_path_factory.mktemp("struck"), encoder) as rounds:
        yield rounds


@pytest.mark.parametrize("number", range(len(JOBS)), ids=lambda n: f"{JOBS[n][0]}-{JOBS[n][1]}")
def test_a_struck_job_ends_as_an_undisturbed_one_and_readers_see_whole_versions(
    jobs: JobRounds, number: int
) -> None:
    job, strike = JOBS[number]
    done = jobs.play(RayRound(number, job, (strike,)))
    assert done.failures == []
    assert done.watch.opened > 0
    assert done.survived or strike.victim == "driver"


@pytest.mark.parametrize("strike", SERVING, ids=str)
def test_while_a_process_is_struck_each_reply_is_whole_or_says_what_it_lacks(
    serving: ServingRounds, strike: Strike
) -> None:
    served = serving.play(RayRound(0, "serving", (strike,)))
    assert served.failures == []
    assert served.counted["whole"] > 0
