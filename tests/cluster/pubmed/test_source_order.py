"""Order of source files by NLM's numbers and by arrival, and gaps in the numbers."""

import pytest

from cluster.errors import InputError
from cluster.pubmed.source_order import (
    apply_order,
    check_gaps,
    find_gaps,
    numbered_place,
    without_order,
)

NLM = "pubmed26n{:04d}.xml.gz"


def test_late_names_are_sorted_by_nlm_number_only() -> None:
    first, second, third = (NLM.format(n) for n in (1, 2, 3))
    cases = [
        (["march.xml", "april.xml"], ["march.xml", "april.xml"]),
        (["n10.xml", "n9.xml"], ["n10.xml", "n9.xml"]),
        ([first, third, "fix.xml", second], [first, second, third, "fix.xml"]),
        ([third, "fix.xml", first, second], [first, second, third, "fix.xml"]),
        ([second, "own26n0001.xml.gz", second], [second, "own26n0001.xml.gz"]),
    ]
    assert [apply_order(names) for names, _ in cases] == [order for _, order in cases]


def test_names_are_sorted_by_their_numbers() -> None:
    cases = [
        (["n10.xml", "n9.xml", "n1.xml.gz"], ["n1.xml.gz", "n9.xml", "n10.xml"]),
        (["2026-04.xml", "2025-12.xml"], ["2025-12.xml", "2026-04.xml"]),
        (["march.xml", "april.xml"], ["march.xml", "april.xml"]),
    ]
    found = [apply_order(names, numbered_place) for names, _ in cases]
    assert found == [order for _, order in cases]


def test_names_without_nlm_number_are_listed() -> None:
    assert without_order([NLM.format(2), "march.xml", "n1.xml"]) == ["march.xml", "n1.xml"]


def names(*numbers: int, prefix: str = "pubmed26") -> list[str]:
    return [f"{prefix}n{number:04d}.xml.gz" for number in numbers]


def test_consecutive_numbers_have_no_gap() -> None:
    assert find_gaps(names(1332, 1330, 1331)) == []
    assert find_gaps(["n1.xml", "n9.xml", "extra.xml.gz", "pubmed26n0001-part.xml"]) == []
    assert (
        find_gaps([*names(1, 2), *names(9, prefix="bioasq26"), *names(7, prefix="pubmed25")]) == []
    )


@pytest.mark.parametrize("prefix", ["pubmed26", "bioasq26", "citeray26"])
def test_gaps_are_named(prefix: str) -> None:
    with pytest.raises(
        InputError,
        match=rf"^{prefix}n1332.xml.gz missing between {prefix}n1331.xml.gz and "
        rf"{prefix}n1333.xml.gz; {prefix}n1334.xml.gz to {prefix}n1339.xml.gz missing .*--allow",
    ):
        check_gaps(names(1331, 1333, 1340, prefix=prefix))


def test_gaps_before_the_last_source_are_ignored() -> None:
    check_gaps(names(1, 5, 6, 7), after=names(6)[0])
    with pytest.raises(InputError, match="n0007"):
        check_gaps(names(1, 5, 6, 8), after=names(6)[0])
