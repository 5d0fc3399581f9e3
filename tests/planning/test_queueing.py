import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.queueing import (
    MAX_UTILISATION,
    erlang_c,
    quantile_per_part,
    servers_for,
    wait_quantile,
)


@pytest.mark.parametrize(
    ("servers", "load", "waiting"),
    # With one server, the result is the load; with two, 2 r^2 / (1 + r), where r is half the load.
    # The others are textbook cases.
    [(1, 0.5, 0.5), (2, 1.0, 1 / 3), (2, 1.5, 0.642857), (3, 2.0, 0.444444), (10, 8.0, 0.409180)],
)
def test_erlang_c_matches_known_values(servers: int, load: float, waiting: float) -> None:
    assert erlang_c(servers, load) == pytest.approx(waiting, abs=1e-6)


def test_waits_at_full_and_low_load() -> None:
    """All requests wait under overload, and none if servers are free."""
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
def test_fewest_sufficient_servers_are_chosen(rate: float, service: float, budget: float) -> None:
    servers = servers_for(rate, service, budget)
    assert rate * service / servers <= MAX_UTILISATION + 1e-6
    assert wait_quantile(servers, rate, service) <= budget
    fewer = servers - 1
    busy = rate * service / fewer if fewer else 2.0
    assert busy > MAX_UTILISATION - 1e-6 or wait_quantile(fewer, rate, service) > budget


def test_each_shard_must_meet_a_higher_quantile() -> None:
    assert quantile_per_part(1) == 0.95
    assert quantile_per_part(32) ** 32 == pytest.approx(0.95)
