"""Arguments and gold documents of the benchmarks that ask BioASQ questions of an index."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cluster.bioasq_file import read_rows
from evaluation.bioasq.score_question import score_documents

Row = dict[str, Any]


def question_parser(description: str | None, limit: int | None = None) -> ArgumentParser:
    """Return a parser for QUESTIONS, --index, --limit, --config and --set."""
    parser = ArgumentParser(description=description)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=limit, help="number of questions")
    parser.add_argument("--config", help="settings file, such as gpu-node.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    return parser


def overrides(given: Namespace, *defaults: str) -> list[str]:
    """Return the settings of the index, then `defaults`, then those of --set."""
    return [f"index.path={given.index.resolve()}", *defaults, *given.set]


def gold_pmids(row: Row) -> set[int]:
    return {int(url.rsplit("/", 1)[1]) for url in row["documents"]}


def average_precision(row: Row, pmids: Iterable[int]) -> float:
    """Return the average precision of the first ten of `pmids`, as BioASQ defines it."""
    return score_documents(list(map(str, gold_pmids(row))), list(map(str, pmids)))[3]


def asked(given: Namespace) -> list[Row]:
    """Return the first --limit questions."""
    rows: list[Row] = read_rows(given.questions)
    return rows[: given.limit]
