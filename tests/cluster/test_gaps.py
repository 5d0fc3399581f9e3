"""Gaps in the numbers of source files with names in NLM's form."""

import pytest

from cluster.errors import InputError
from cluster.pubmed.source_order import check_gaps, find_gaps


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
