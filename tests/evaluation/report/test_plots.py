"""Plots say in lines and words what the numbers say."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import html

from evaluation.bootstrap import Interval
from evaluation.report.plot_intervals import (
    plot_curves,
    plot_differences,
    plot_measures,
    plot_spread,
)
from evaluation.report.render_report import render_report
from evaluation.report.report import Group
from tests.evaluation.report.some_report import ALL, LIGHT, NAN, REPORT, page, svg_text


def test_plot_names_measures_their_values_and_the_groups_if_there_are_several() -> None:
    svg = plot_measures({"MAP": {"all": ALL["documents MAP"], "list": Interval(0.6, 0.5, 0.7)}}, "")
    shown = [word for word in svg_text(svg) if not re.fullmatch(r"[01]\.\d", word)]
    assert shown == ["MAP", "all", "0.770", "list", "0.600"]
    svg = plot_measures({"MAP": {"all": Interval(0.5, 0.4, 0.6)}, "F1": {"all": NAN}}, "")
    assert "all" not in svg_text(svg)
    assert {"MAP", "F1"} <= set(svg_text(svg))


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


def test_plots_have_colours_of_the_page_and_no_fonts_identifiers_or_styles_of_their_own(
    whole: Any,
) -> None:
    svgs = whole.xpath("//svg")
    assert len(svgs) == len(whole.xpath("//figure/figcaption")) == 6
    for svg in svgs:
        drawn = html.tostring(svg, encoding="unicode")
        assert not re.search(r"#[0-9a-fA-F]{6}|url\(|font-family|href", drawn)
        assert not svg.xpath(".//@id|.//style|.//defs|.//metadata")
        assert svg.get("role") == "img"
        assert "95%" in svg.get("aria-label") or "median" in svg.get("aria-label")


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


def test_a_risk_coverage_curve_passes_through_its_points() -> None:
    """The scale is computed from tick labels that only one of the axes has."""
    svg = plot_curves({"yesno": [(0.2, 0.0), (0.6, 0.5), (1.0, 0.25)]}, "")
    assert {"coverage", "risk", "yesno"} <= set(svg_text(svg))
    tree = html.fromstring(svg)
    x, y = ({t.text: float(t.get(side)) for t in tree.xpath("//text[@x]")} for side in "xy")
    across, down = x["1.0"] - x["0.6"], y["0.5"] - y["0.1"]
    paths = [p for p in tree.iter("path") if "stroke: var(--accent)" in p.get("style", "")]
    points = np.reshape([float(n) for n in re.findall(r"[\d.]+", paths[0].get("d"))], (-1, 2))
    shares = (points - points[0]) / (across, down)
    assert shares == pytest.approx(np.array([(0, 0), (1, 1.25), (2, 0.625)]), abs=0.01)


def test_page_shows_risk_coverage_curves_with_their_measures() -> None:
    measures = {"risk yesno AURC": Interval(0.1, 0.0, 0.2), "coverage yesno answered": NAN}
    report = replace(LIGHT, groups=(Group("all", 3, measures),))
    assert len(page(report).xpath("//section//figure")) == 1
    tree = page(replace(report, curves={"yesno": [(0.5, 0.0), (1.0, 0.5)]}))
    assert len(tree.xpath("//section[h3='Risk and coverage']//figure")) == 2


def test_spread_of_nothing_is_left_out() -> None:
    for spread in ({}, {"documents AP": []}, {"documents AP": [math.nan]}):
        tree = page(replace(LIGHT, spread=spread))
        assert not tree.xpath("//*[@id='spread']|//a[@href='#spread']")


def test_drawing_leaves_matplotlibs_settings_alone() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    render_report(REPORT)
    assert dict(matplotlib.rcParams) == before


@pytest.mark.process
def test_importing_the_page_does_not_import_matplotlib() -> None:
    code = "import sys, evaluation.report.render_report; sys.exit('matplotlib' in sys.modules)"
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=60).returncode == 0
