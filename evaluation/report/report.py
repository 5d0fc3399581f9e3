"""Content of a report page: plain data, created by the code that scored the run.

`evaluation.report.render_report` renders it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluation.bootstrap import Interval

Items = tuple[tuple[str, ...], ...] | None
"""Exact answer as in `read_bioasq.Entry.exact`: items with synonyms; None if there is none."""


@dataclass(frozen=True, slots=True)
class Group:
    """The measures over a group of questions; NaN if a measure does not apply."""

    name: str
    questions: int
    measures: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences between the run and `other_run` by measure, each with a verdict."""

    other_run: str
    differences: Mapping[str, Interval]
    verdicts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A gold document, or a document of the run. `found_rank` is its rank in the run, from 1.

    `judged` is true if experts judged it for this question, as they did all gold documents.
    """

    url: str
    found_rank: int | None
    is_gold: bool
    judged: bool

    @property
    def standing(self) -> str:
        """Text for the page, such as "gold, missed" or "not gold, unjudged"."""
        if self.is_gold:
            return "gold, missed" if self.found_rank is None else "gold, found"
        return "judged, not gold" if self.judged else "not gold, unjudged"


@dataclass(frozen=True, slots=True)
class SnippetRow:
    """A snippet of the gold, of the run, or of both.

    `hit` is true if a snippet of the run overlaps with one of the gold. `matched` is the shared
    part, in code points of `text` with an exclusive end; None if it is the whole text.
    """

    document: str
    text: str
    hit: bool
    in_run: bool
    in_gold: bool
    matched: tuple[int, int] | None = None

    @property
    def standing(self) -> str:
        """Source of the snippet and whether it overlaps, such as "gold and run, matched"."""
        sides = [name for name, is_in in (("gold", self.in_gold), ("run", self.in_run)) if is_in]
        return f"{' and '.join(sides)}, {'matched' if self.hit else 'not matched'}"


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its gold and its answer; `score_name` is the score that ranked it."""

    id: str
    type: str
    body: str
    score_name: str
    scores: Mapping[str, float]
    documents: tuple[DocumentRow, ...] = ()
    snippets: tuple[SnippetRow, ...] = ()
    gold_ideal: tuple[str, ...] = ()
    said_ideal: tuple[str, ...] = ()
    gold_exact: Items = None
    said_exact: Items = None


@dataclass(frozen=True, slots=True)
class Report:
    """Content of the page. The first group is shown at the top; `worst` starts with the worst.

    `questions` is the number of answered questions, `missing` holds the ids of the others, and
    `notes` are warnings.
    """

    title: str
    run: str
    gold: str
    seed: int
    resamples: int
    questions: int
    missing: tuple[str, ...]
    groups: tuple[Group, ...]
    against: Comparison | None = None
    worst: tuple[Case, ...] = ()
    notes: tuple[str, ...] = ()
