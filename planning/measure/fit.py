"""The growth laws that carry a measurement to another size, each from a few points.

No law falls: where noise makes a slope negative, it is 0 and the mean stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from cluster.settings.settings import Strict

Points = Sequence[tuple[float, float]]


def _least_squares(points: Points) -> tuple[float, float]:
    """(intercept, slope) of the line through `points`; of a single x, slope 0."""
    x_mean, y_mean = (fmean(values) for values in zip(*points, strict=True))
    spread = sum((x - x_mean) ** 2 for x, _ in points)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in points) / spread if spread else 0.0
    slope = max(slope, 0.0)
    return y_mean - slope * x_mean, slope


class Line(Strict):
    """base + slope x n; proportional to n where the points would give a base below 0."""

    base: float
    slope: float

    def at(self, n: float) -> float:
        """The value at size `n`."""
        return self.base + self.slope * n

    @classmethod
    def of(cls, points: Points) -> Line:
        """Least-squares fit to `points` of (n, value)."""
        base, slope = _least_squares(points)
        if base < 0:
            slope = sum(x * y for x, y in points) / sum(x * x for x, _ in points)
            base = 0.0
        return cls(base=base, slope=slope)


class Logarithmic(Strict):
    """base + slope x ln n: an HNSW's add and search (Malkov & Yashunin, TPAMI 2020, 4.2)."""

    base: float
    slope: float
    smallest: float

    def at(self, n: float) -> float:
        """Below the smallest measured n, what was measured there."""
        return self.base + self.slope * math.log(max(n, self.smallest))

    @classmethod
    def of(cls, points: Points) -> Logarithmic:
        """Least-squares fit to `points` of (n, value) over ln n; every n is above 0."""
        base, slope = _least_squares([(math.log(x), y) for x, y in points])
        return cls(base=base, slope=slope, smallest=min(x for x, _ in points))


class Heaps(Strict):
    """factor x n^exponent: distinct terms of n records (Heaps, 1978, section 7.5)."""

    factor: float
    exponent: float

    def at(self, n: float) -> float:
        """Expected number of distinct terms in `n` records; 0 for none."""
        return float(self.factor * n**self.exponent) if n > 0 else 0.0

    @classmethod
    def of(cls, points: Points) -> Heaps:
        """Least-squares fit to the logarithms of `points`; the exponent is at most 1."""
        logs = [(math.log(x), math.log(max(y, 1.0))) for x, y in points]
        base, slope = _least_squares(logs)
        return cls(factor=math.exp(base), exponent=min(slope, 1.0))
