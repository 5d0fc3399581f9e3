"""A report with every kind of content, and helpers to read the page."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from lxml import html

from evaluation.bootstrap import Interval
from evaluation.report.render_report import render_report
from evaluation.report.report import Case, Comparison, DocumentRow, Group, Report, SnippetRow

NAN = Interval(math.nan, math.nan, math.nan)
DASH = "\N{EN DASH}"
PUBMED = "http://www.ncbi.nlm.nih.gov/pubmed/"
ALL = {
    "documents MAP": Interval(0.76971, 0.7369, 0.8022),
    "documents recall": Interval(0.5, 0.4, 0.6),
    "yesno accuracy": Interval(0.9, 0.8, 1.0),
    "BLEU": Interval(23.25, 20.125, 26.5),
    "factoid MRR": NAN,
}
GROUPS = (
    Group("all", 1327, ALL),
    Group(
        "yesno",
        82,
        {**ALL, "documents MAP": Interval(0.3, 0.2, 0.4), "BLEU": NAN},
    ),
    Group("list", 60, {"documents MAP": Interval(0.6, 0.55, 0.65)}),
)
AGAINST = Comparison(
    "other-run.json",
    {
        "documents MAP": Interval(0.1257, 0.1023, 0.1512),
        "documents recall": Interval(-0.2, -0.3, -0.1),
        "yesno accuracy": Interval(-0.00001, -0.01, 0.01),
        "factoid MRR": NAN,
    },
    {
        "documents MAP": "better",
        "documents recall": "worse",
        "yesno accuracy": "no difference shown",
    },
)
CASE = Case(
    id="6402c9",
    type="factoid",
    body="Which protein is it?",
    score_name="documents AP",
    scores={"documents AP": 0.125, "factoid MRR": 0.0},
    documents=(
        DocumentRow(PUBMED + "11", 8, True, True),
        DocumentRow(PUBMED + "12", None, True, True),
        DocumentRow(PUBMED + "13", 1, False, False),
        DocumentRow(PUBMED + "14", 2, False, True),
    ),
    snippets=(
        SnippetRow(PUBMED + "11", "It is aquaporin-4, of course.", True, True, False, (6, 17)),
        SnippetRow(PUBMED + "11", "whole text", True, True, True),
        SnippetRow(PUBMED + "12", "never found", False, False, True),
    ),
    gold_ideal=("It is aquaporin-4.", "The protein is AQP4."),
    said_ideal=("It is MOG.",),
    gold_exact=(("aquaporin-4", "AQP4"),),
    said_exact=(("MOG",), ("GFAP",)),
)
REPORT = Report(
    title="Dev questions",
    run="run.json",
    gold="gold.json",
    seed=7,
    resamples=2000,
    questions=1327,
    missing=("q1", "q2"),
    groups=GROUPS,
    against=AGAINST,
    worst=(CASE,),
    notes=("The judge is weak.",),
)
# Without measures, for tests that do not need them.
LIGHT = replace(REPORT, groups=(), against=None)


def page(report: Report) -> Any:
    return html.document_fromstring(render_report(report))


def text(element: Any) -> str:
    """Return the visible text of an element."""
    return " ".join(" ".join(element.itertext()).split())


def rows(table: Any) -> list[list[str]]:
    return [[text(cell) for cell in row.xpath("./th|./td")] for row in table.xpath(".//tr")]


def with_case(**fields: Any) -> Report:
    return replace(LIGHT, worst=(replace(CASE, **fields),))
