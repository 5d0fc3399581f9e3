"""Compare figures of CiteRay with figures of a peer from the same run."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "| what | CiteRay | peer | its figure | ratio |\n| --- | --- | --- | --- | --- |"


@dataclass(frozen=True)
class Ratio:
    """Figures of CiteRay and a peer in `unit`; smaller is better for milliseconds and bytes."""

    what: str
    ours: float
    peer: str
    theirs: float
    unit: str

    @property
    def better(self) -> float:
        """Return the factor by which CiteRay is better."""
        if self.unit in ("ms", "bytes a passage"):
            return self.theirs / self.ours
        return self.ours / self.theirs

    def row(self) -> str:
        ours, theirs = (f"{figure:,.4g} {self.unit}" for figure in (self.ours, self.theirs))
        return f"| {self.what} | {ours} | {self.peer} | {theirs} | {self.better:.2f}x |"
