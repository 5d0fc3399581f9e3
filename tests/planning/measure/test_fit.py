import pytest

from planning.measure.fit import Growth, Heaps, Line


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
