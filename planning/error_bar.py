"""Error bars of a plan, from the errors of its coefficients in a check with a real build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Self

from cluster.settings.settings import Strict
from planning.figures import Figure

Kind = Literal["time", "disk", "memory", "search"]
# Prefix of the names of a check's rows, by kind of figure.
ROWS: dict[Kind, str] = {
    "time": "time: ",
    "disk": "bytes of ",
    "memory": "memory of ",
    "search": "search of ",
}


class Span(Strict):
    """The lowest and highest relative error of predictions; -0.2 means 20% too low."""

    low: float
    high: float

    def around(self, value: float) -> tuple[float, float]:
        """Return the range of the true value of a prediction; it includes the prediction."""
        return value / (1 + max(self.high, 0.0)), value / (1 + min(self.low, 0.0))


class ErrorBar(Strict):
    """Relative errors in a check that built an index of `citations`, by kind of figure."""

    citations: int
    time: Span
    disk: Span
    memory: Span
    search: Span

    @classmethod
    def of(cls, citations: int, errors: Sequence[tuple[str, float]]) -> Self:
        """Create it from `errors`, the names of the check's rows with their relative errors."""
        spans = {}
        for kind, begin in ROWS.items():
            found = [error for name, error in errors if name.startswith(begin)]
            spans[kind] = Span(low=round(min(found), 3), high=round(max(found), 3))
        return cls(citations=citations, **spans)

    def shown(self, figure: Figure, kind: Kind) -> str:
        """Format the range of `figure`, such as `12.1 h to 14.9 h`."""
        span: Span = getattr(self, kind)
        low, high = (str(replace(figure, value=value)) for value in span.around(figure.value))
        return f"{low} to {high}"

    @property
    def words(self) -> str:
        """Describe the range of relative errors by kind in one sentence."""
        spans = ", ".join(
            f"{kind} {getattr(self, kind).low:+.0%} to {getattr(self, kind).high:+.0%}"
            for kind in ROWS
        )
        return (
            f"error bars: as far off as the prediction of a real build of {self.citations:,} "
            f"citations was ({spans}); nothing of the plan's size was built"
        )
