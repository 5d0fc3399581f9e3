"""The headline and the families of measures, and the head of the page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from evaluation.bootstrap import Interval
from evaluation.report.render_report import FAMILIES, number
from evaluation.report.report import Group, Report
from tests.evaluation.report.some_report import DASH, GROUPS, LIGHT, NAN, REPORT, page, rows, text


def test_the_headline_shows_each_measure_of_the_first_group_and_its_difference(whole: Any) -> None:
    assert rows(whole.get_element_by_id("headline")) == [
        ["Measure", "Value", "95% interval", "Difference", "95% interval", "Verdict"],
        ["documents MAP", "0.7697", "[0.7369, 0.8022]", "0.1257", "[0.1023, 0.1512]", "better"],
        [
            "documents recall",
            "0.5000",
            "[0.4000, 0.6000]",
            "-0.2000",
            "[-0.3000, -0.1000]",
            "worse",
        ],
        [
            "yesno accuracy",
            "0.9000",
            "[0.8000, 1.0000]",
            "0.0000",
            "[-0.0100, 0.0100]",
            "no difference shown",
        ],
        ["BLEU", "23.2500", "[20.1250, 26.5000]", DASH, DASH, DASH],
    ]


def test_without_another_run_nothing_is_said_of_differences() -> None:
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


def test_families_are_the_measures_first_words_and_those_that_apply_to_nothing_are_not_shown(
    whole: Any,
) -> None:
    assert [text(h) for h in whole.xpath("//section/h3")] == [
        FAMILIES["documents"],
        FAMILIES["yesno"],
        "BLEU",
    ]


@pytest.mark.slow
def test_a_measure_stands_in_its_family(subtests: pytest.Subtests) -> None:
    for name, title in [
        ("documents condensed MAP", "Condensed list and unjudged documents"),
        ("documents unjudged rate at 10", "Condensed list and unjudged documents"),
        ("documents MAP", "Documents"),
        ("ROUGE-SU4 F1", "Ideal answers: ROUGE"),
        ("faithfulness", "RAGAS"),
        ("context recall", "RAGAS"),
        ("citation support rate", "BioGen: citations"),
        ("novelty at 3", "novelty"),
        ("risk yesno at 30%", "Risk and coverage"),
        ("coverage list answered", "Risk and coverage"),
        ("coverage 25% list F1", "Accuracy of the most confident answers"),
    ]:
        with subtests.test(name=name, title=title):
            report = replace(LIGHT, groups=(Group("all", 3, {name: Interval(0.5, 0.4, 0.6)}),))
            assert [text(h) for h in page(report).xpath("//section/h3")] == [title]


def test_the_whole_set_is_left_out_where_one_type_alone_has_the_measures(whole: Any) -> None:
    (table,) = whole.xpath("//section[h3='Yes/no answers']//table")
    assert rows(table)[0] == ["Measure", "yesno 82 questions"]


def test_two_groups_with_other_values_are_both_shown() -> None:
    two = (GROUPS[0], Group("yesno", 82, {"yesno accuracy": Interval(0.1, 0.0, 0.2)}))
    (table,) = page(replace(REPORT, groups=two)).xpath("//section[h3='Yes/no answers']//table")
    assert rows(table)[0] == ["Measure", "all 1,327 questions", "yesno 82 questions"]


def test_the_head_says_what_was_scored_and_how(whole: Any) -> None:
    facts = dict(
        zip(
            map(text, whole.xpath("//header//dt")),
            map(text, whole.xpath("//header//dd")),
            strict=True,
        )
    )
    assert facts == {
        "Run": "run.json",
        "Gold": "gold.json",
        "Against": "other-run.json",
        "Questions": "1,327 answered, 2 without an answer",
        "Intervals": "95%, percentile bootstrap over the questions, 2,000 resamples, seed 7",
    }
    assert text(whole.xpath("//details[summary='2 questions without an answer']/p")[0]) == "q1, q2"


def test_notes_stand_before_the_measures(whole: Any) -> None:
    marks = whole.xpath("//section[@class='notes']//li|//h2[@id='measures']")
    assert [text(mark) for mark in marks] == ["The judge is weak.", "Measures"]


@pytest.mark.parametrize("groups", [(), (Group("all", 0, {}),), (Group("all", 3, {"F1": NAN}),)])
def test_a_run_that_nothing_can_be_said_of_has_a_page_that_says_so(groups: Any) -> None:
    tree = page(Report("t", "r", "g", 0, 2000, 0, (), groups))
    assert "No measure applies to these questions." in text(tree)
    assert "0 of 0 answered questions" in text(tree)
    assert not tree.xpath("//svg|//table|//details")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.12345, "0.1235"), (-0.00001, "0.0000"), (-0.5, "-0.5000"), (math.nan, "n/a")],
)
def test_numbers_have_four_decimals(value: float, shown: str) -> None:
    # 0.12345 as a float lies a little above its decimal form.
    assert number(value) == shown
