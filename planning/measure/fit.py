"""Growth laws that extrapolate measurements to another size, fitted to a few points.

If a fitted slope is negative, which is due to noise, it is set to zero and the mean is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, linear_regression

import numpy as np

from cluster.settings.fields import Strict

Points = Sequence[tuple[float, float]]
STEPS = 64


def _least_squares(points: Points) -> tuple[float, float]:
    """Return (intercept, slope); the slope is 0 if it would be negative or all x are equal."""
    x, y = zip(*points, strict=True)
    slope = max(linear_regression(x, y).slope, 0.0) if len(set(x)) > 1 else 0.0
    return fmean(y) - slope * fmean(x), slope


class Line(Strict):
    """base + slope x n; proportional to n if the fitted base would be negative."""

    base: float
    slope: float

    def at(self, n: float) -> float:
        """Return the value at size `n`."""
        return self.base + self.slope * n

    @classmethod
    def of(cls, points: Points) -> Line:
        """Fit to `points` of (n, value) by least squares."""
        base, slope = _least_squares(points)
        if base < 0:
            slope = sum(x * y for x, y in points) / sum(x * x for x, _ in points)
            base = 0.0
        return cls(base=base, slope=slope)


class Growth(Strict):
    """Cost of an item among n items, interpolated linearly over ln n between measurements.

    The costs of inserting into and searching an HNSW graph grow in this way (Malkov & Yashunin
    2020, 4.2). Insertion costs more once the graph exceeds the CPU caches
    (planning/measure/measure_graph.py).
    """

    points: tuple[tuple[float, float], ...]

    def at(self, n: float) -> float:
        """Return the cost at `n`; constant below the measurements, extrapolated above them."""
        (n0, y0), (n1, y1) = (self.points * 2)[-2:] if len(self.points) == 1 else self.points[-2:]
        if n > n1 > n0:
            return y1 + (y1 - y0) * math.log(n / n1) / math.log(n1 / n0)
        logs = [math.log(x) for x, _ in self.points]
        return float(np.interp(math.log(max(n, 1.0)), logs, [y for _, y in self.points]))

    def mean(self, n: float) -> float:
        """Return the mean cost per item of adding `n` items to an empty structure."""
        return fmean(self.at(n * (step + 0.5) / STEPS) for step in range(STEPS))

    @classmethod
    def of(cls, points: Points) -> Growth:
        """Use `points` of (n, cost), ascending in n; decreasing costs are raised."""
        kept: list[tuple[float, float]] = []
        for n, cost in points:
            kept.append((n, max(cost, kept[-1][1] if kept else 0.0)))
        return cls(points=tuple(kept))


class Heaps(Strict):
    """factor x n^exponent: distinct terms of n records (Heaps, 1978, section 7.5)."""

    factor: float
    exponent: float

    def at(self, n: float) -> float:
        """Return the expected number of distinct terms in `n` records."""
        return float(self.factor * n**self.exponent) if n > 0 else 0.0

    @classmethod
    def of(cls, points: Points) -> Heaps:
        """Fit to the logarithms of `points` by least squares; the exponent is at most 1."""
        logs = [(math.log(x), math.log(max(y, 1.0))) for x, y in points]
        base, slope = _least_squares(logs)
        return cls(factor=math.exp(base), exponent=min(slope, 1.0))
