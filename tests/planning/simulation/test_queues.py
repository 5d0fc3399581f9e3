"""The simulated queues against the formulas that are known for them."""

from __future__ import annotations

import numpy as np
import pytest

from planning.measure.coefficients import Point
from planning.queueing import erlang_c, wait_quantile
from planning.simulation.queues import (
    Loss,
    Seconds,
    lognormal,
    quantile,
    serve_batches,
    serve_parts,
)

NEVER = 1e9


def poisson(rate: float, count: int, seed: int = 1) -> Seconds:
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))


def exponential(mean: float, seed: int):
    generator = np.random.default_rng(seed)
    return lambda together: generator.exponential(mean, together.shape)


def fixed(seconds: float):
    return lambda together: np.full(together.shape, seconds)


@pytest.mark.slow
@pytest.mark.parametrize(("servers", "rate"), [(1, 5.0), (3, 18.0)])
def test_waits_are_those_of_the_m_m_c_queue(servers: int, rate: float) -> None:
    arrivals = poisson(rate, 80_000)
    served = serve_batches(arrivals, servers, 1, exponential(0.1, 2), NEVER)
    waits = served.begun - arrivals
    assert (waits > 1e-9).mean() == pytest.approx(erlang_c(servers, rate * 0.1), rel=0.06)
    assert np.quantile(waits, 0.95) == pytest.approx(wait_quantile(servers, rate, 0.1), rel=0.1)


def test_work_is_kept_and_a_stage_of_one_part_is_the_same_queue() -> None:
    arrivals = poisson(24, 3000)
    served = serve_batches(arrivals, 3, 1, fixed(0.1), NEVER)
    assert served.busy == pytest.approx(3000 * 0.1)
    assert np.allclose(serve_parts(arrivals, (1, 3), fixed(0.1), NEVER).left, served.left)


def test_waiting_questions_share_a_batch_and_lone_ones_do_not_wait_for_one() -> None:
    points = (
        Point(concurrent=1, median_seconds=1.0, p95_seconds=1.0),
        Point(concurrent=4, median_seconds=2.5, p95_seconds=2.5),
    )
    draw = lognormal(points, np.random.default_rng(5))
    arrivals = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 9.0])
    left = serve_batches(arrivals, 1, 4, draw, NEVER).left
    # The first alone, the next four together, the last alone again.
    assert np.allclose(left, [1.0, 3.5, 3.5, 3.5, 3.5, 10.0])


def test_a_question_that_waits_past_its_deadline_is_given_up_and_takes_no_replica() -> None:
    served = serve_batches(np.array([0.0, 0.1, 2.05]), 1, 1, fixed(2.0), 1.5)
    assert served.done.tolist() == [False, False, False]
    assert np.allclose(served.left, [1.5, 1.6, 3.55])
    assert served.busy == pytest.approx(4.0)


def test_what_a_lost_replica_was_doing_is_lost_at_once_and_it_takes_nothing_until_it_is_back() -> (
    None
):
    loss = Loss(0.5, 5.0, np.array([0]))
    served = serve_batches(np.array([0.0, 1.0]), 1, 1, fixed(1.0), NEVER, loss)
    assert served.done.tolist() == [False, True]
    assert np.allclose(served.left, [0.5, 6.0])


def test_a_lost_shard_leaves_its_part_out_while_the_other_replica_answers_the_rest() -> None:
    loss = Loss(1.0, 3.0, np.array([[0, 0]]))
    arrivals = np.array([0.9, 1.5, 4.0])
    alone = serve_parts(arrivals, (2, 1), fixed(0.2), 0.5, loss)
    assert alone.done.tolist() == [False, False, True]
    two = serve_parts(arrivals, (2, 2), fixed(0.2), 0.5, loss)
    assert two.done.tolist() == [False, True, True]


def test_a_question_leaves_with_the_last_of_its_parts() -> None:
    drawn = iter([np.array([0.1, 0.7, 0.3])])
    served = serve_parts(np.array([1.0]), (3, 1), lambda _: next(drawn), NEVER)
    assert served.left.tolist() == [1.7]


def test_a_quantile_counts_weights() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([0.05, 0.8, 0.15])
    assert quantile(values, weights, 0.5) == 1.0
    assert quantile(values, weights, 0.95) == 2.0
    assert quantile(np.empty(0), np.empty(0), 0.5) == 0.0
