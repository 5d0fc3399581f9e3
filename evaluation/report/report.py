"""What a report page shows: plain data, filled by whoever scored the run.

`evaluation.report.render_report` makes the page of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evaluation.bootstrap import Interval

Items = tuple[tuple[str, ...], ...] | None
"""An exact answer as `read_bioasq.Entry.exact` has it: items of synonyms; None for none."""


@dataclass(frozen=True, slots=True)
class Group:
    """The measures over some of the questions; those that are NaN do not apply."""

    name: str
    questions: int
    measures: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The run less `other_run`, measure by measure, and each difference in a word."""

    other_run: str
    differences: Mapping[str, Interval]
    verdicts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A gold document, or one of the run's. `found_rank` is its place in the run from 1.

    `judged` says that somebody judged it for this question; gold documents are judged.
    """

    url: str
    found_rank: int | None
    is_gold: bool
    judged: bool

    @property
    def standing(self) -> str:
        """Gold and found, in words for the page: "gold, missed", "not gold, unjudged", …"""
        if self.is_gold:
            return "gold, missed" if self.found_rank is None else "gold, found"
        return "judged, not gold" if self.judged else "not gold, unjudged"


@dataclass(frozen=True, slots=True)
class SnippetRow:
    """A snippet of the gold, of the run, or of both.

    `hit` says that it shares characters with the other side. `matched` is that part,
    code points of `text` with the end exclusive; None where it is the whole text.
    """

    document: str
    text: str
    hit: bool
    in_run: bool
    in_gold: bool
    matched: tuple[int, int] | None = None

    @property
    def standing(self) -> str:
        """Where the snippet is from and whether it overlaps: "gold and run, matched"."""
        sides = [name for name, is_in in (("gold", self.in_gold), ("run", self.in_run)) if is_in]
        return f"{' and '.join(sides)}, {'matched' if self.hit else 'not matched'}"


@dataclass(frozen=True, slots=True)
class Case:
    """A question with what was asked for and what was said; `score_name` is what ranked it."""

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
    """What the page shows. The first group is the headline; `worst` begins with the worst.

    `questions` counts the answered ones, `missing` holds the ids of the others, `notes` are
    warnings, and `spread` is a score's name -> that score of each question. `curves` are the
    (coverage, risk) points of each type of question.
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
    spread: Mapping[str, Sequence[float]] = field(default_factory=dict)
    curves: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
