"""The headline and the families of measures, and the head of the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluation.bootstrap import Interval
from evaluation.report.report import Group, Report
from tests.evaluation.report.some_report import DASH, GROUPS, LIGHT, NAN, REPORT, page, rows, text


def test_headline_shows_measures_and_differences_where_there_is_another_run(whole: Any) -> None:
    found = {row[0]: row[1:] for row in rows(whole.get_element_by_id("headline"))[1:]}
    assert list(found) == ["documents MAP", "documents recall", "yesno accuracy", "BLEU"]
    value, difference = ["0.5000", "[0.4000, 0.6000]"], ["-0.2000", "[-0.3000, -0.1000]"]
    assert found["documents recall"] == [*value, *difference, "worse"]
    # A difference of -0.00001 is no negative 0.
    assert found["yesno accuracy"][2:] == ["0.0000", "[-0.0100, 0.0100]", "no difference shown"]
    assert found["BLEU"] == ["23.2500", "[20.1250, 26.5000]", DASH, DASH, DASH]
    tree = page(replace(REPORT, against=None))
    assert rows(tree.get_element_by_id("headline"))[0] == ["Measure", "Value", "95% interval"]
    assert "Against" not in text(tree)
    assert len(tree.xpath("//section//svg")) == 3


def test_a_family_shows_its_groups_side_by_side_with_their_counts(whole: Any) -> None:
    (table,) = whole.xpath("//section[h3='Documents']//table")
    assert rows(table) == [
        ["Measure", "all 1,327 questions", "yesno 82 questions", "list 60 questions"],
        [
            "documents MAP",
            "0.7697 [0.7369, 0.8022]",
            "0.3000 [0.2000, 0.4000]",
            "0.6000 [0.5500, 0.6500]",
        ],
        ["documents recall", "0.5000 [0.4000, 0.6000]", "0.5000 [0.4000, 0.6000]", DASH],
    ]


def test_measure_stands_in_the_family_of_its_first_words(subtests: pytest.Subtests) -> None:
    for name, title in [
        ("documents condensed MAP", "Condensed list and unjudged documents"),
        ("documents MAP", "Documents"),
        ("novelty at 3", "novelty"),
        ("coverage list answered", "Risk and coverage"),
        ("coverage 25% list F1", "Accuracy of the most confident answers"),
    ]:
        with subtests.test(name=name, title=title):
            groups = (Group("all", 3, {name: Interval(0.5, 0.4, 0.6), "factoid MRR": NAN}),)
            tree = page(replace(LIGHT, groups=groups))
            assert [text(h) for h in tree.xpath("//section/h3")] == [title]


def test_whole_set_is_left_out_where_one_type_alone_has_the_measures(whole: Any) -> None:
    (table,) = whole.xpath("//section[h3='Yes/no answers']//table")
    assert rows(table)[0] == ["Measure", "yesno 82 questions"]
    two = (GROUPS[0], Group("yesno", 82, {"yesno accuracy": Interval(0.1, 0.0, 0.2)}))
    (table,) = page(replace(REPORT, groups=two)).xpath("//section[h3='Yes/no answers']//table")
    assert rows(table)[0] == ["Measure", "all 1,327 questions", "yesno 82 questions"]


def test_head_says_what_was_scored_and_how(whole: Any) -> None:
    names, told = (list(map(text, whole.xpath(f"//header//{tag}"))) for tag in ("dt", "dd"))
    facts = dict(zip(names, told, strict=True))
    assert (facts["Run"], facts["Gold"]) == ("run.json", "gold.json")
    assert facts["Against"] == "other-run.json"
    assert facts["Questions"] == "1,327 answered, 2 without an answer"
    assert facts["Intervals"].endswith("2,000 resamples, seed 7")
    assert text(whole.xpath("//details[summary='2 questions without an answer']/p")[0]) == "q1, q2"
    assert [text(li) for li in whole.xpath("//section[@class='notes']//li")] == [
        "The judge is weak."
    ]


@pytest.mark.parametrize("groups", [(), (Group("all", 0, {}),), (Group("all", 3, {"F1": NAN}),)])
def test_a_run_that_nothing_can_be_said_of_has_a_page_that_says_so(groups: Any) -> None:
    tree = page(Report("t", "r", "g", 0, 2000, 0, (), groups))
    assert "No measure applies to these questions." in text(tree)
    assert "0 of 0 answered questions" in text(tree)
    assert not tree.xpath("//svg|//table|//details")
