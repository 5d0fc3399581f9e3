from __future__ import annotations

import pytest
from ray.exceptions import RayTaskError, WorkerCrashedError

from cluster.errors import CiteRayError, StorageError
from cluster.session import plain_error


def raised_in_a_task(cause: Exception) -> RayTaskError:
    """As the driver gets it: a RayTaskError that is also of the cause's class."""
    error: RayTaskError = RayTaskError("stage", "a long traceback", cause)
    return error.as_instanceof_cause()


def test_the_error_of_a_task_is_the_sentence_that_was_raised_there() -> None:
    found = plain_error(raised_in_a_task(StorageError("/index: the disk is full")))
    assert type(found) is StorageError
    assert str(found) == "/index: the disk is full"


def test_what_ray_adds_below_the_sentence_is_left_out() -> None:
    found = plain_error(raised_in_a_task(CiteRayError("one sentence\nFailed to apply UDF")))
    assert str(found) == "one sentence"


def test_an_error_that_went_through_two_tasks_is_the_first_one() -> None:
    inner = raised_in_a_task(CiteRayError("one sentence"))
    assert str(plain_error(raised_in_a_task(inner))) == "one sentence"


def test_a_worker_that_is_lost_for_good_is_told_with_what_to_do() -> None:
    said = str(plain_error(WorkerCrashedError()))
    assert "WorkerCrashedError" in said
    assert said.endswith("run the same command again")


def test_an_error_that_nobody_foresaw_stays_whole() -> None:
    assert plain_error(raised_in_a_task(KeyError("pmid"))) is None


@pytest.mark.parametrize("code", [1, 2])
def test_the_exit_code_survives_a_task(code: int) -> None:
    class OwnError(CiteRayError):
        exit_code = code

    found = plain_error(raised_in_a_task(OwnError("one sentence")))
    assert found is not None
    assert found.exit_code == code
