"""How far a plan may be off: as far as its coefficients were when a real build checked them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Self

from cluster.settings.settings import Strict
from planning.figures import Figure

Kind = Literal["time", "disk", "memory", "search"]
# How the rows of a check begin.
ROWS: dict[Kind, str] = {
    "time": "time: ",
    "disk": "bytes of ",
    "memory": "memory of ",
    "search": "search of ",
}


class Span(Strict):
    """The lowest and the highest relative error of predictions, -0.2 where a fifth too low."""

    low: float
    high: float

    def around(self, value: float) -> tuple[float, float]:
        """What `value` may really be, at least and at most, itself included."""
        return value / (1 + max(self.high, 0.0)), value / (1 + min(self.low, 0.0))


class ErrorBar(Strict):
    """The errors of a check that built so many citations, by what was predicted."""

    citations: int
    time: Span
    disk: Span
    memory: Span
    search: Span

    @classmethod
    def of(cls, citations: int, errors: Sequence[tuple[str, float]]) -> Self:
        """`errors` are the names of the check's rows with their relative errors."""
        spans = {}
        for kind, begin in ROWS.items():
            found = [error for name, error in errors if name.startswith(begin)]
            spans[kind] = Span(low=round(min(found), 3), high=round(max(found), 3))
        return cls(citations=citations, **spans)

    def shown(self, figure: Figure, kind: Kind) -> str:
        """Such as `12.1 h to 14.9 h`."""
        span: Span = getattr(self, kind)
        low, high = (str(replace(figure, value=value)) for value in span.around(figure.value))
        return f"{low} to {high}"

    @property
    def words(self) -> str:
        """One sentence with the range of relative errors by kind."""
        spans = ", ".join(
            f"{kind} {getattr(self, kind).low:+.0%} to {getattr(self, kind).high:+.0%}"
            for kind in ROWS
        )
        return (
            f"error bars: as far off as the prediction of a real build of {self.citations:,} "
            f"citations was ({spans}); nothing of the plan's size was built"
        )
