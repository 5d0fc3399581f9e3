"""Plots of measures with their intervals, as images for embedding in a page.

Each plot is an `<img>` element whose SVG is in its address, so that plots cannot affect the page or
each other.
"""

from __future__ import annotations

import base64
import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from evaluation.bootstrap import Interval

INK, FAINT, ACCENT, BETTER, WORSE = "#1d2125", "#5f6b76", "#1f5fa8", "#0b6e4f", "#b3261e"

# Colour and dashes of each curve; the dashes distinguish curves in print.
_STROKES = ((ACCENT, "-"), (INK, "--"), (FAINT, "-."))
_VERDICTS = {"better": BETTER, "worse": WORSE}

_WIDTH = 4.4  # Inches, so that text stays readable on a phone.
_ROW = 0.2
_AXIS = 0.45
_LETTER = 0.072  # Mean width of a letter in inches.
_LONGEST = 27
_BINS = 20


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a forest plot; a row without an interval is a heading for the rows below."""

    label: str
    interval: Interval | None = None
    note: str = ""
    colour: str = ACCENT


def plot_measures(measures: Mapping[str, Mapping[str, Interval]], label: str) -> Markup:
    """Plot a dot and a whisker for each measure and group: measure -> group -> interval.

    The groups of a measure are listed below its name; a group without the measure is left out.
    `label` is the text for screen readers.
    """
    alone = len({group for groups in measures.values() for group in groups}) <= 1
    rows = []
    for measure, groups in measures.items():
        if not alone:
            rows.append(Row(measure))
        for place, (group, interval) in enumerate(groups.items()):
            colour = INK if place == 0 and not alone else ACCENT
            rows.append(
                Row(measure if alone else group, interval, f"{interval.value:z.3f}", colour)
            )
    return _forest(rows, label, zero=False)


def plot_differences(
    differences: Mapping[str, Interval], verdicts: Mapping[str, str], label: str
) -> Markup:
    """Plot each difference as a dot and whisker around the zero line, with its verdict."""
    rows = [
        Row(name, interval, verdicts.get(name, ""), _VERDICTS.get(verdicts.get(name, ""), FAINT))
        for name, interval in differences.items()
    ]
    return _forest(rows, label, zero=True)


def plot_spread(values: Sequence[float], label: str) -> Markup:
    """Plot a histogram of scores in 20 bins, from 0 to 1 if all scores lie there."""
    inside = all(0 <= value <= 1 for value in values)
    with _drawing(1.8, 0.6, 0.1) as (figure, axes):
        counts, edges = np.histogram(values, _BINS, (0, 1) if inside else None)
        axes.bar(edges[:-1], counts, np.diff(edges) * 0.9, align="edge", color=ACCENT)
        axes.set_ylabel("questions", color=INK)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        return _image(figure, label)


def plot_curves(curves: Mapping[str, Sequence[tuple[float, float]]], label: str) -> Markup:
    """Draw a line through the (coverage, risk) points of each curve, with a legend."""
    with _drawing(2.4, 0.6, 0.1) as (figure, axes):
        figure.subplots_adjust(bottom=0.2)
        for (name, points), (colour, dashes) in zip(curves.items(), cycle(_STROKES), strict=False):
            coverage, risk = zip(*points, strict=True)
            mark = "o" if len(points) == 1 else None
            axes.plot(coverage, risk, color=colour, linestyle=dashes, marker=mark, label=name)
        axes.set_xlabel("coverage", color=INK)
        axes.set_ylabel("risk", color=INK)
        axes.set_xlim(0, 1.02)
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, labelcolor=INK)
        return _image(figure, label)


def _forest(rows: Sequence[Row], label: str, *, zero: bool) -> Markup:
    left, right = (
        _LETTER * max((len(_short(text)) for text in texts), default=0) + 0.2
        for texts in ([row.label for row in rows], [row.note for row in rows])
    )
    with _drawing(_AXIS + _ROW * len(rows), left, right) as (figure, axes):
        for place, row in enumerate(rows):
            weight = "bold" if row.interval is None else "normal"
            _write(axes, 0, place, row.label, ha="right", weight=weight)
            _write(axes, 1, place, row.note, ha="left")
        drawn = [
            (place, row.interval, row.colour) for place, row in enumerate(rows) if row.interval
        ]
        places, found, colours = zip(*drawn, strict=True)
        lows, highs = [i.low for i in found], [i.high for i in found]
        axes.hlines(places, lows, highs, colors=colours, linewidth=1.6)
        axes.scatter([i.value for i in found], places, s=20, c=colours, zorder=3)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_yticks([])
        axes.grid(axis="x", color=FAINT, alpha=0.3, linewidth=0.6)
        _set_range(axes, found, zero)
        return _image(figure, label)


def _write(axes: Axes, side: int, place: int, text: str, **style: Any) -> None:
    """Write text left (0) or right (1) of the axes, without parsing `$` as mathematics."""
    axes.annotate(
        _short(text),
        (side, place),
        (10 * side - 5, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        va="center",
        color=INK,
        parse_math=False,
        annotation_clip=False,
        **style,
    )


def _set_range(axes: Axes, found: Sequence[Interval], zero: bool) -> None:
    ends = [end for i in found for end in (i.value, i.low, i.high) if math.isfinite(end)]
    if zero:
        far = 1.1 * max((abs(end) for end in ends), default=0.0) or 1.0
        axes.set_xlim(-far, far)
        axes.axvline(0, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    elif all(0 <= end <= 1 for end in ends):
        axes.set_xlim(-0.02, 1.02)


def _short(text: str) -> str:
    # XML forbids control characters and unpaired surrogates.
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


@contextmanager
def _drawing(height: float, left: float, right: float) -> Iterator[tuple[Figure, Axes]]:
    """Yield a figure of `height` inches in matplotlib's default style, ignoring user settings.

    The margins are in inches. They are fixed because the page's font is not known here.
    """
    settings = {"svg.fonttype": "none", "svg.hashsalt": "citeray", "font.size": 9}
    with matplotlib.style.context(["default", settings]):
        figure = Figure(figsize=(_WIDTH, height))
        figure.subplots_adjust(left / _WIDTH, 0.3 / height, 1 - right / _WIDTH, 1 - 0.1 / height)
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.spines[["left", "top", "right"]].set_visible(False)
        axes.spines["bottom"].set_color(FAINT)
        axes.tick_params(color=FAINT, labelcolor=INK)
        yield figure, axes


def _image(figure: Figure, label: str) -> Markup:
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        # The browser renders the text, so missing glyphs in matplotlib's font do not matter.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    data = base64.b64encode(drawn.getvalue()).decode()
    return Markup('<img class="plot" alt="{}" src="data:image/svg+xml;base64,{}">').format(
        label, data
    )
