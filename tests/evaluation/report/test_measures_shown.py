"""The headline and the families of measures on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluation.report.report import Group, Report
from tests.evaluation.report.some_report import DASH, NAN, REPORT, page, rows, text


def test_headline_shows_measures_and_differences(whole: Any) -> None:
    found = {row[0]: row[1:] for row in rows(whole.get_element_by_id("headline"))[1:]}
    assert list(found) == ["documents MAP", "documents recall", "yesno accuracy", "BLEU"]
    value, difference = ["0.5000", "[0.4000, 0.6000]"], ["-0.2000", "[-0.3000, -0.1000]"]
    assert found["documents recall"] == [*value, *difference, "worse"]
    # A difference of -0.00001 is not shown as -0.
    assert found["yesno accuracy"][2:] == ["0.0000", "[-0.0100, 0.0100]", "no difference shown"]
    assert found["BLEU"] == ["23.2500", "[20.1250, 26.5000]", DASH, DASH, DASH]
    tree = page(replace(REPORT, against=None))
    assert rows(tree.get_element_by_id("headline"))[0] == ["Measure", "Value", "95% interval"]
    assert "Against" not in text(tree)
    assert [text(h) for h in tree.xpath("//section/h3")] == ["Documents", "Yes/no answers", "BLEU"]


@pytest.mark.parametrize("groups", [(), (Group("all", 0, {}),), (Group("all", 3, {"F1": NAN}),)])
def test_report_without_measures_says_so(groups: Any) -> None:
    tree = page(Report("t", "r", "g", 0, 2000, 0, (), groups))
    assert "No measure applies to these questions." in text(tree)
    assert "0 of 0 answered questions" in text(tree)
    assert not tree.xpath("//table|//details")
