"""Figures of a plan with their formulas.

A figure whose inputs were not measured is NaN, and so is every figure computed from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from planning.units import format_bytes, format_seconds

# Shown instead of a figure that only a measurement on a GPU can give.
UNKNOWN = (
    "unknown: run `citeray plan --calibrate` on a GPU, or give --gpu FILE "
    "(from `python -m benchmarks.gpu_check`)"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A value, computed by `formula` from `inputs`, whose names include their units."""

    name: str
    value: float
    unit: str
    formula: str
    inputs: Mapping[str, float] = field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether every input of the figure was measured."""
        return not math.isnan(self.value)

    @classmethod
    def of(cls, name: str, unit: str, formula: str, *values: float, note: str = "") -> Figure:
        """Evaluate `formula`, a sum of products such as "2 x nodes x price + base".

        `values` are the values of its names, in order. `note` is appended to the formula in
        brackets.
        """
        names = re.split(r" x | \+ ", formula)
        unknown = dict.fromkeys(n for n in names if not n.isdigit())
        inputs = dict(zip(unknown, values, strict=True))
        value = sum(
            math.prod(inputs[n] if n in inputs else float(n) for n in term.split(" x "))
            for term in formula.split(" + ")
        )
        return cls(name, value, unit, f"{formula} ({note})" if note else formula, inputs)

    @classmethod
    def total(cls, name: str, parts: Iterable[Figure]) -> Figure:
        """Return the sum of `parts` (at least one), in the unit of the first."""
        parts = list(parts)
        formula = " + ".join(part.name for part in parts)
        return cls.of(name, parts[0].unit, formula, *(part.value for part in parts))

    def __str__(self) -> str:
        if not self.known:
            return UNKNOWN
        if self.unit == "bytes":
            return format_bytes(self.value)
        if self.unit == "seconds":
            return format_seconds(self.value)
        shown = f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:,.3g}"
        return f"{shown} {self.unit}".strip()

    def explained(self) -> str:
        """Return the figure with its formula and inputs: `index: 6 s = a x b  [a 2, b 3]`."""
        inputs = ", ".join(
            f"{name} {'unknown' if math.isnan(value) else format(value, '.6g')}"
            for name, value in self.inputs.items()
        )
        value = f"{self.value:.6g} {self.unit}" if self.known else UNKNOWN
        return f"{self.name}: {value} = {self.formula}" + (f"  [{inputs}]" if inputs else "")
