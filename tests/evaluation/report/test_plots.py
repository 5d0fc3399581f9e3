"""Plots say in lines and words what the numbers say."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from lxml import html

from evaluation.bootstrap import Interval
from evaluation.report.plot_intervals import (
    plot_differences,
    plot_measures,
    plot_spread,
)
from tests.evaluation.report.some_report import ALL, LIGHT, page, svg_text


def whisker(svg: str) -> tuple[float, float, float]:
    """Where the first whisker begins and ends and where its dot is, in the plot's points."""
    begin, end = map(float, re.findall(r'd="M ([\d.]+) \S+\s+L ([\d.]+) \S+\s*" style="fill: none; '
                                       r"stroke: var\(--accent\)", svg)[0])  # fmt: skip
    (dot,) = re.findall(r'var\(--accent\)[^>]*transform="translate\(([\d.]+) ', svg)
    return begin, end, float(dot)


def test_the_dot_and_the_whisker_stand_where_the_numbers_say() -> None:
    """On an axis from -0.02 to 1.02; two ticks, 0 and 1, give the scale."""
    svg = plot_measures({"MAP": {"all": Interval(0.5, 0.25, 1.0)}}, "")
    ticks = {
        element.text: float(element.get("x"))
        for element in html.fromstring(svg).xpath("//text[@x]")
        if element.text in ("0.0", "1.0")
    }
    zero, one = ticks["0.0"], ticks["1.0"]
    begin, end, dot = whisker(svg)
    assert begin == pytest.approx(zero + 0.25 * (one - zero), abs=0.1)
    assert end == pytest.approx(one, abs=0.1)
    assert dot == pytest.approx(zero + 0.5 * (one - zero), abs=0.1)


def test_odd_values_and_names_are_drawn() -> None:
    for value in (0.0, math.nan, math.inf):
        assert "<svg" in plot_differences({"MAP": Interval(value, value, value)}, {}, "")
    # A dollar sign in a name is no mathematics.
    assert r"F$_1$ \frac" in svg_text(plot_measures({r"F$_1$ \frac": {"all": ALL["BLEU"]}}, ""))
    svg = plot_measures({"BLEU": {"all": Interval(23.0, 20.0, 26.0)}}, "")
    assert {"20", "26"} <= set(svg_text(svg))
    assert "20" in svg_text(plot_spread([20.0, 30.0], ""))


def test_difference_has_the_verdict_of_the_data_and_its_colour() -> None:
    less = {"MAP": Interval(0.1, 0.05, 0.15), "F1": Interval(-0.1, -0.2, -0.05)}
    svg = plot_differences(less, {"MAP": "better", "F1": "worse"}, "")
    assert {"better", "worse"} <= set(svg_text(svg))
    assert "var(--better)" in svg
    assert "var(--worse)" in svg
    # Neither better nor worse, though its interval excludes 0.
    svg = plot_differences({"unjudged": Interval(0.1, 0.05, 0.15)}, {"unjudged": "higher"}, "")
    assert "higher" in svg_text(svg)
    assert not {"var(--better)", "var(--worse)"} & set(re.findall(r"var\(--\w+\)", svg))


def test_the_spread_counts_the_scores_in_20_bins() -> None:
    """Of 0, 0.25, 1, 1: bars of heights 1, 1 and 2, at bins 0, 5 and 19."""
    bars = [
        [float(n) for n in re.findall(r"-?[\d.]+", e.get("d"))]
        for e in html.fromstring(plot_spread([0, 0.25, 1, 1], "")).iter("path")
        if "fill: var(--accent)" in e.get("style", "")
    ]
    assert len(bars) == 20
    heights = [bar[1] - bar[5] for bar in bars]
    assert [n for n, height in enumerate(heights) if height > 0] == [0, 5, 19]
    assert heights[19] == pytest.approx(2 * heights[0], rel=1e-3)


def test_spread_of_nothing_is_left_out() -> None:
    for spread in ({}, {"documents AP": []}, {"documents AP": [math.nan]}):
        tree = page(replace(LIGHT, spread=spread))
        assert not tree.xpath("//*[@id='spread']|//a[@href='#spread']")
