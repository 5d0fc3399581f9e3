import pytest

from cluster.errors import InputError
from planning.units import (
    parse_bytes,
    parse_count,
    parse_rate,
    parse_seconds,
)


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
