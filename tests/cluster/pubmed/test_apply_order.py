"""Order of source files, by NLM's numbers and by arrival."""

from cluster.pubmed.source_order import apply_order, numbered_place, without_order

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
