"""Markdown tables of several runs, in the format of the challenges' own result tables.

Titles and columns of BioASQ and Synergy follow bioasq.org's result pages, with exact answers by
type as in paper 000 (Tables 1 to 6). Those of BioGen follow its overviews (TREC 2024 and 2025).
Answers compared as texts follow paper 000, Figures 3 to 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import InputError, cut
from evaluation.bioasq.score_bioasq import EXACT_TEXT
from evaluation.evaluated import Evaluated


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `direction` is 1 if more is better, -1 if less is better, 0 if neither is."""

    name: str
    direction: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """Values by row name, in the order of `columns`; NaN if a value is missing."""

    title: str
    columns: tuple[Column, ...]
    rows: Mapping[str, Sequence[float]]


def render_table(table: Table) -> str:
    """Return the table with its title.

    The best value is determined after rounding to four decimals; a column whose rounded values are
    all equal has none.
    """
    shown = {name: list(map(_shown, values)) for name, values in table.rows.items()}
    best = [
        _best([texts[position] for texts in shown.values()], column.direction)
        for position, column in enumerate(table.columns)
    ]
    rows = [
        [
            escape(name),
            *(f"**{t}**" if t == top else t for t, top in zip(texts, best, strict=True)),
        ]
        for name, texts in shown.items()
    ]
    headings = ["System", *(column.name for column in table.columns)]
    return "\n".join([f"### {table.title}", "", *table_lines(headings, rows)])


def table_lines(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose cells are Markdown."""
    for cells in (headings, ["---"] * len(headings), *rows):
        yield f"| {' | '.join(cells)} |"


def _shown(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:z.4f}"


def _best(texts: Sequence[str], direction: int) -> str | None:
    known = [text for text in texts if text != "-"]
    if len(set(known)) < 2 or not direction:
        return None
    return max(known, key=lambda text: direction * float(text))


def escape(name: str) -> str:
    """Escape a name for Markdown and put it on one line."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|~" else c for c in " ".join(name.split()))


# Official column -> measure of `citeray evaluate`.
Columns = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a table; with `kind`, its measures are over questions of that type only."""

    title: str
    columns: Columns
    kind: str | None = None
    to_depth: bool = False


def _retrieval(of: str) -> Columns:
    return {
        "Mean precision": f"{of} precision",
        "Recall": f"{of} recall",
        "F-Measure": f"{of} F1",
        "MAP": f"{of} MAP",
        "GMAP": f"{of} GMAP",
    }


def _texts(prefix: str) -> Columns:
    names = ("BLEU", "BERTScore precision", "BERTScore recall", "BERTScore F1")
    return {name: f"{prefix}{name}" for name in names}


def _stance(stance: str) -> Columns:
    names = {"Precision": "precision", "Recall": "recall", "F1": "F1"}
    return {column: f"{stance} {name}" for column, name in names.items()}


BIOASQ = (
    Layout("Documents", _retrieval("documents"), to_depth=True),
    Layout("Snippets", _retrieval("snippets"), to_depth=True),
    Layout(
        "Exact answers: Yes/No",
        {
            "Accuracy": "yesno accuracy",
            "F1 Yes": "yesno F1 yes",
            "F1 No": "yesno F1 no",
            "Macro F1": "yesno macro F1",
        },
    ),
    Layout(
        "Exact answers: Factoid",
        {
            "Strict Acc.": "factoid strict accuracy",
            "Lenient Acc.": "factoid lenient accuracy",
            "MRR": "factoid MRR",
        },
    ),
    Layout(
        "Exact answers: List",
        {"Mean Prec.": "list precision", "Recall": "list recall", "F-Measure": "list F1"},
    ),
    Layout(
        "Ideal answers",
        {
            "R-2 (Rec)": "ROUGE-2 recall",
            "R-2 (F1)": "ROUGE-2 F1",
            "R-SU4 (Rec)": "ROUGE-SU4 recall",
            "R-SU4 (F1)": "ROUGE-SU4 F1",
        },
    ),
    Layout("Exact answers as texts: Yes/No", _texts(EXACT_TEXT), "yesno"),
    Layout("Exact answers as texts: Factoid", _texts(EXACT_TEXT), "factoid"),
    Layout("Exact answers as texts: List", _texts(EXACT_TEXT), "list"),
    Layout("Ideal answers as texts: Yes/No", _texts(""), "yesno"),
    Layout("Ideal answers as texts: Factoid", _texts(""), "factoid"),
    Layout("Ideal answers as texts: List", _texts(""), "list"),
    Layout("Ideal answers as texts: Summary", _texts(""), "summary"),
)
BIOGEN_A = (
    Layout("Supporting citations", _stance("support")),
    Layout("Contradicting citations", _stance("contradict")),
    Layout(
        "Supporting citations by experts' labels",
        {
            "Precision (strict)": "expert support precision (strict)",
            "Recall (strict)": "expert support soft recall (strict)",
            "Precision (relaxed)": "expert support precision (relaxed)",
            "Recall (relaxed)": "expert support soft recall (relaxed)",
        },
    ),
    Layout(
        "Contradicting citations by experts' labels",
        {
            "Precision": "expert contradict precision",
            "Recall": "expert contradict soft recall",
        },
    ),
)
BIOGEN_B = (
    Layout(
        "Citation quality",
        {
            "Citation coverage": "citation coverage",
            "Citation support rate": "citation support rate",
            "Citation contradict rate": "citation contradict rate",
        },
    ),
    Layout("Document relevancy", {"Precision": "document precision", "Recall": "document recall"}),
)
LAYOUTS = {"bioasq": BIOASQ, "synergy": BIOASQ, "biogen-a": BIOGEN_A, "biogen-b": BIOGEN_B}


def name_runs(runs: Sequence[Path]) -> dict[str, Path]:
    """Return each run by its file name without suffix, or by its path if names are ambiguous.

    Raises InputError for a run that is given twice.
    """
    if twice := [run for position, run in enumerate(runs) if run in runs[:position]]:
        raise InputError(f"{twice[0]}: is given twice; name each run once")
    stems = [run.stem for run in runs]
    return {run.stem if stems.count(run.stem) == 1 else str(run): run for run in runs}


def check_same_questions(runs: Mapping[str, Path], evaluated: Mapping[str, Evaluated]) -> None:
    """Raise InputError if a run leaves out a question that another run answers.

    Unanswered questions are excluded from means, so one column would mix means over different
    questions.
    """
    answered = {name: frozenset(found.scores.ids) for name, found in evaluated.items()}
    every = frozenset[str]().union(*answered.values())
    for name, ids in answered.items():
        if ids != every:
            other = next(n for n, theirs in answered.items() if theirs - ids)
            missing = min(answered[other] - ids)
            raise InputError(
                f"{runs[name]}: answers {len(ids)} of {len(every)} questions and lacks "
                f"{cut(missing, 60)!r}, which {runs[other]} answers; a table compares runs over "
                "the same questions: let each run answer all questions, or leave this run out"
            )


def make_tables(evaluated: Mapping[str, Evaluated], form: str, depth: int) -> list[Table]:
    """Return the tables of `form`, a key of LAYOUTS, for which any run has a value.

    Values are those of `citeray evaluate`; NaN if a measure does not apply to a run.
    """
    tables = (_fill(layout, evaluated, depth) for layout in LAYOUTS[form])
    return [
        table
        for table in tables
        if any(not math.isnan(value) for values in table.rows.values() for value in values)
    ]


def _fill(layout: Layout, evaluated: Mapping[str, Evaluated], depth: int) -> Table:
    scores = {
        name: found.scores.only(found.groups.get(layout.kind, ())) if layout.kind else found.scores
        for name, found in evaluated.items()
    }
    directions = {m.name: m.direction for m in next(iter(scores.values())).measures}
    columns = {name: measure for name, measure in layout.columns.items() if measure in directions}
    values = {name: table.values() for name, table in scores.items()}
    return Table(
        f"{layout.title}, first {depth:,}" if layout.to_depth else layout.title,
        tuple(Column(name, directions[measure]) for name, measure in columns.items()),
        {
            name: tuple(found[measure] for measure in columns.values())
            for name, found in values.items()
        },
    )
