"""Findings of a verification: what is wrong, where, and how to repair it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

REBUILD = "build the index again with `citeray index build --again`"
RESTORE = f"restore it from a copy, or {REBUILD}"
# Maximum number of PMIDs that a finding names; the rest are only counted.
EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, and `mend`, how to repair it.

    `kind` is a short fixed word for counting. `place` is a path relative to the index directory, or
    the name of a source file. `pmids` are at most EXAMPLES examples, ascending.
    """

    kind: str
    place: str
    message: str
    mend: str
    pmids: tuple[int, ...] = ()

    def __str__(self) -> str:
        examples = f" (PMID {', '.join(map(str, self.pmids))})" if self.pmids else ""
        return f"{self.place}: {self.message}{examples}; {self.mend}"


@dataclass
class Notes:
    """Findings about one location with the same repair."""

    place: str
    mend: str
    findings: list[Finding] = field(default_factory=list)

    def note(self, kind: str, message: str, pmids: Iterable[int] = (), *, file: str = "") -> None:
        """Add a finding about the location, or about `file` in it."""
        where = f"{self.place}/{file}" if file else self.place
        self.findings.append(Finding(kind, where, message, self.mend, first_pmids(pmids)))


def first_pmids(pmids: Iterable[int]) -> tuple[int, ...]:
    """Return the EXAMPLES smallest of the distinct `pmids`."""
    return tuple(sorted({int(p) for p in pmids})[:EXAMPLES])
