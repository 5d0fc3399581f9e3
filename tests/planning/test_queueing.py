"""Queueing theory, fitted curves and units of quantities."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.errors import InputError
from planning.measure.fit import Growth, Heaps, Line
from planning.queueing import (
    MAX_UTILISATION,
    erlang_c,
    quantile_per_part,
    servers_for,
    wait_quantile,
)
from planning.units import parse_bytes, parse_count, parse_rate, parse_seconds


@pytest.mark.parametrize(
    ("servers", "load", "waiting"),
    # With one server, the result is the load; with two, 2 r^2 / (1 + r), where r is half the load.
    # The others are textbook cases.
    [(1, 0.5, 0.5), (2, 1.0, 1 / 3), (2, 1.5, 0.642857), (3, 2.0, 0.444444), (10, 8.0, 0.409180)],
)
def test_erlang_c_matches_known_values(servers: int, load: float, waiting: float) -> None:
    assert erlang_c(servers, load) == pytest.approx(waiting, abs=1e-6)


def test_waits_follow_the_load() -> None:
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


def test_quantities_are_parsed() -> None:
    counts = {"38M": 38_000_000, "30k": 30_000, "1.5M": 1_500_000, " 7 ": 7}
    assert {text: parse_count(text, "--citations") for text in counts} == counts
    times = {"2s": 2, "500ms": 0.5, "1 h": 3600}
    assert {text: parse_seconds(text, "--p95") for text in times} == times
    sizes = {"64GB": 64e9, "64Gi": 64 * 2**30, "64GiB": 64 * 2**30, "1tb": 1e12}
    assert {text: parse_bytes(text, "--node-memory") for text in sizes} == sizes
    assert parse_rate("0.5", "--qps") == 0.5


def test_invalid_quantity_is_refused_with_its_option(subtests: pytest.Subtests) -> None:
    for text in ("", "many", "-3M", "38 million", "0", "1e5", "inf", "nan"):
        with subtests.test(text=text), pytest.raises(InputError, match=r"--citations .*38M"):
            parse_count(text, "--citations")
    with pytest.raises(InputError, match="not a whole number"):
        parse_count("0.5", "--citations")
    for text in ("2", "2 seconds", "0s"):
        with subtests.test(text=text), pytest.raises(InputError, match="--p95"):
            parse_seconds(text, "--p95")
    with pytest.raises(InputError, match="64GB"):
        parse_bytes("64", "--node-memory")


def test_line_is_fitted_to_its_points() -> None:
    line = Line.of([(1000, 7.0), (3000, 11.0)])
    assert line.at(10_000) == pytest.approx(25.0)
    # A line with a negative intercept is replaced by a proportional one.
    line = Line.of([(1000, 1.0), (2000, 3.0)])
    assert (line.base, line.at(0)) == (0, 0)
    assert line.at(2000) == pytest.approx(2.8)


def test_negative_slope_is_clamped_to_zero() -> None:
    fitted = Line.of([(1000, 5.0), (4000, 3.0)])
    assert fitted.at(1e9) == fitted.at(4000) == pytest.approx(4.0)


def test_growth_is_equal_per_doubling_beyond_the_measurements() -> None:
    law = Growth.of([(1000, 1.0), (2000, 1.5)])
    assert law.at(8000) == pytest.approx(2.5)
    assert law.at(1) == pytest.approx(1.0)


def test_heaps_law_is_recovered() -> None:
    found = Heaps.of([(n, 30 * n**0.6) for n in (1000, 2000, 4000)])
    assert (found.factor, found.exponent) == (pytest.approx(30), pytest.approx(0.6))
    assert found.at(0) == 0
    # The exponent is at most 1.
    assert Heaps.of([(10, 10), (20, 80)]).exponent == 1


def test_mean_growth_cost_is_below_the_last_cost() -> None:
    law = Growth.of([(100, 1.0), (10_000, 3.0), (1_000_000, 9.0)])
    assert law.at(1) == 1.0
    assert law.at(1000) == pytest.approx(2.0)
    assert 1.0 < law.mean(10_000) < law.at(10_000)
    assert law.mean(100) == pytest.approx(1.0)
