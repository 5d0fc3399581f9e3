"""A number that says where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planning.units import format_bytes, format_seconds


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` in `unit`, by `formula` from `inputs`, whose names hold their units."""

    name: str
    value: float
    unit: str
    formula: str
    inputs: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.unit == "bytes":
            return format_bytes(self.value)
        if self.unit == "seconds":
            return format_seconds(self.value)
        shown = f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:,.3g}"
        return f"{shown} {self.unit}".strip()

    def explained(self) -> str:
        """Such as `index = a x b (a 2, b 3)`."""
        inputs = ", ".join(f"{name} {value:.6g}" for name, value in self.inputs.items())
        return f"{self.name}: {self.value:.6g} {self.unit} = {self.formula}" + (
            f"  [{inputs}]" if inputs else ""
        )
