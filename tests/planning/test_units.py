import pytest

from cluster.errors import InputError
from planning.units import (
    format_bytes,
    format_seconds,
    gibibytes,
    parse_bytes,
    parse_count,
    parse_rate,
    parse_seconds,
)


@pytest.mark.parametrize(
    ("text", "value"), [("38M", 38_000_000), ("30k", 30_000), ("1.5M", 1_500_000), (" 7 ", 7)]
)
def test_counts_are_read(text: str, value: int) -> None:
    assert parse_count(text, "--citations") == value


@pytest.mark.parametrize(("text", "value"), [("2s", 2), ("500ms", 0.5), ("1 h", 3600)])
def test_times_are_read(text: str, value: float) -> None:
    assert parse_seconds(text, "--p95") == value


@pytest.mark.parametrize(
    ("text", "value"), [("64GB", 64e9), ("64Gi", 64 * 2**30), ("64GiB", 64 * 2**30), ("1tb", 1e12)]
)
def test_sizes_are_read_by_powers_of_1000_and_of_1024(text: str, value: float) -> None:
    assert parse_bytes(text, "--node-memory") == value


def test_what_is_no_count_is_refused_with_the_option_and_an_example(
    subtests: pytest.Subtests,
) -> None:
    for text in ["", "many", "-3M", "38 million", "0", "1e5", "inf", "nan"]:
        with subtests.test(text=text), pytest.raises(InputError, match=r"--citations .*38M"):
            parse_count(text, "--citations")


def test_half_a_citation_is_refused() -> None:
    with pytest.raises(InputError, match="not a whole number"):
        parse_count("0.5", "--citations")


@pytest.mark.parametrize("text", ["2", "2 seconds", "0s"])
def test_a_time_needs_its_unit_and_must_be_above_0(text: str) -> None:
    with pytest.raises(InputError, match="--p95"):
        parse_seconds(text, "--p95")


def test_a_size_needs_its_unit() -> None:
    with pytest.raises(InputError, match="64GB"):
        parse_bytes("64", "--node-memory")


def test_rates_may_be_below_1() -> None:
    assert parse_rate("0.5", "--qps") == 0.5


def test_kubernetes_sizes_are_rounded_up() -> None:
    assert [gibibytes(1), gibibytes(2**31)] == ["1Gi", "2Gi"]


def test_figures_are_shown_with_units_that_fit() -> None:
    assert format_bytes(1.5e9) == "1.5 GB"
    assert [format_seconds(s) for s in (0.0123, 90, 600, 9e4, 9e5)] == [
        "12.3 ms",
        "90 s",
        "10.0 min",
        "25.0 h",
        "10.4 days",
    ]
