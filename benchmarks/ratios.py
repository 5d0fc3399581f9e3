"""Represent a figure of CiteRay, the figure of a peer from the same run, and their ratio."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HEAD = "| what | CiteRay | peer | its figure | ratio |\n| --- | --- | --- | --- | --- |"


@dataclass(frozen=True)
class Ratio:
    """`ours` and `theirs` are in `unit`: of "ms" and "s" less is better, of rates more."""

    what: str
    ours: float
    peer: str
    theirs: float
    unit: str

    @property
    def better(self) -> float:
        """How many times better we are, by time or by rate."""
        if self.unit in ("ms", "s", "bytes"):
            return self.theirs / self.ours
        return self.ours / self.theirs

    def row(self) -> str:
        ours, theirs = (f"{figure:,.4g} {self.unit}" for figure in (self.ours, self.theirs))
        return f"| {self.what} | {ours} | {self.peer} | {theirs} | {self.better:.2f}x |"


def print_ratios(ratios: Iterable[Ratio]) -> None:
    print(HEAD)
    for ratio in ratios:
        print(ratio.row(), flush=True)
