import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.queueing import (
    MAX_UTILISATION,
    erlang_c,
    servers_for,
    slowest_of,
    wait_quantile,
)


@pytest.mark.parametrize(
    ("servers", "load", "waiting"),
    # Of one server it is the load; of two 2 r^2 / (1 + r) with r half the load; the rest are
    # textbook cases.
    [(1, 0.5, 0.5), (2, 1.0, 1 / 3), (2, 1.5, 0.642857), (3, 2.0, 0.444444), (10, 8.0, 0.409180)],
)
def test_erlang_c_has_its_known_values(servers: int, load: float, waiting: float) -> None:
    assert erlang_c(servers, load) == pytest.approx(waiting, abs=1e-6)


def test_waits_at_the_bounds() -> None:
    """Everyone waits where there is more to do than can be done, nobody where a server is free."""
    assert erlang_c(3, 3.0) == 1
    assert wait_quantile(3, 30, 0.1) == math.inf
    assert wait_quantile(20, 1, 0.1) == 0
    assert 0 < erlang_c(2000, 1900) < 1
    # M/M/1: P(W > t) = rho exp(-(mu - lambda) t)
    t = wait_quantile(1, rate_per_s=5, service_s=0.1)
    assert 0.5 * math.exp(-(10 - 5) * t) == pytest.approx(0.05)


@pytest.mark.slow
@given(
    rate=st.floats(0.1, 500), service=st.floats(0.001, 2), budget=st.floats(0.001, 5),
)  # fmt: skip
def test_enough_servers_are_chosen_and_none_too_many(
    rate: float, service: float, budget: float
) -> None:
    servers = servers_for(rate, service, budget)
    assert rate * service / servers <= MAX_UTILISATION + 1e-6
    assert wait_quantile(servers, rate, service) <= budget
    fewer = servers - 1
    busy = rate * service / fewer if fewer else 2.0
    assert busy > MAX_UTILISATION - 1e-6 or wait_quantile(fewer, rate, service) > budget


def test_each_of_many_shards_must_be_faster_than_all_together() -> None:
    assert slowest_of(1) == 0.95
    assert slowest_of(32) ** 32 == pytest.approx(0.95)
