"""Plots show the values that they are given."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from lxml import etree

from evaluation.bootstrap import Interval
from evaluation.report.plot_intervals import (
    ACCENT,
    BETTER,
    WORSE,
    plot_differences,
    plot_measures,
    plot_spread,
)
from tests.evaluation.report.some_report import ALL, LIGHT, page, svg_of, svg_text


def whisker(svg: str) -> tuple[float, float, float]:
    """Return (begin, end, dot) of the first whisker in the plot's points."""
    line = rf'd="M ([\d.]+) \S+\s+L ([\d.]+) \S+\s*"[^>]*style="fill: none; stroke: {ACCENT}'
    begin, end = map(float, re.findall(line, svg)[0])
    (dot,) = re.findall(rf'<use [^>]*x="([\d.]+)"[^>]*style="fill: {ACCENT}', svg)
    return begin, end, float(dot)


def test_dot_and_whisker_are_at_their_values() -> None:
    """The ticks 0 and 1 give the scale of the axis."""
    svg = svg_of(plot_measures({"MAP": {"all": Interval(0.5, 0.25, 1.0)}}, ""))
    ticks = {
        element.text: float(element.get("x"))
        for element in etree.fromstring(svg.encode()).iter("{*}text")
        if element.text in ("0.0", "1.0")
    }
    zero, one = ticks["0.0"], ticks["1.0"]
    begin, end, dot = whisker(svg)
    assert begin == pytest.approx(zero + 0.25 * (one - zero), abs=0.1)
    assert end == pytest.approx(one, abs=0.1)
    assert dot == pytest.approx(zero + 0.5 * (one - zero), abs=0.1)


def test_infinite_values_and_dollar_signs_are_drawn() -> None:
    for value in (0.0, math.nan, math.inf):
        assert "<svg" in svg_of(plot_differences({"MAP": Interval(value, value, value)}, {}, ""))
    # A dollar sign in a name does not start a formula.
    assert r"F$_1$ \frac" in svg_text(plot_measures({r"F$_1$ \frac": {"all": ALL["BLEU"]}}, ""))
    svg = plot_measures({"BLEU": {"all": Interval(23.0, 20.0, 26.0)}}, "")
    assert {"20", "26"} <= set(svg_text(svg))
    assert "20" in svg_text(plot_spread([20.0, 30.0], ""))


def test_difference_shows_verdict_and_its_colour() -> None:
    less = {"MAP": Interval(0.1, 0.05, 0.15), "F1": Interval(-0.1, -0.2, -0.05)}
    svg = plot_differences(less, {"MAP": "better", "F1": "worse"}, "")
    assert {"better", "worse"} <= set(svg_text(svg))
    assert BETTER in svg_of(svg)
    assert WORSE in svg_of(svg)
    # A measure without a better direction is neutral, although its interval excludes 0.
    svg = plot_differences({"unjudged": Interval(0.1, 0.05, 0.15)}, {"unjudged": "higher"}, "")
    assert "higher" in svg_text(svg)
    assert not {BETTER, WORSE} & set(re.findall(r"#\w+", svg_of(svg)))


def test_histogram_counts_scores_in_20_bins() -> None:
    """The scores 0, 0.25, 1, 1 give bars of heights 1, 1 and 2 at bins 0, 5 and 19."""
    bars = [
        [float(n) for n in re.findall(r"-?[\d.]+", e.get("d"))]
        for e in etree.fromstring(svg_of(plot_spread([0, 0.25, 1, 1], "")).encode()).iter("{*}path")
        if f"fill: {ACCENT}" in e.get("style", "")
    ]
    assert len(bars) == 20
    heights = [bar[1] - bar[5] for bar in bars]
    assert [n for n, height in enumerate(heights) if height > 0] == [0, 5, 19]
    assert heights[19] == pytest.approx(2 * heights[0], rel=1e-3)


def test_empty_histogram_is_left_out() -> None:
    for spread in ({}, {"documents AP": []}, {"documents AP": [math.nan]}):
        tree = page(replace(LIGHT, spread=spread))
        assert not tree.xpath("//*[@id='spread']|//a[@href='#spread']")
