"""`citeray ablate --markdown` over stored runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.ablation.ablation_runs import Ablation

pytestmark = pytest.mark.slow


def rewrite(record: Path, *changes: dict[str, Any]) -> None:
    """Change the replies of a stored run in order."""
    head, *rows = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    changed = [{**row, **change} for row, change in zip(rows, changes, strict=True)]
    record.write_text("".join(json.dumps(x) + "\n" for x in (head, *changed)), encoding="utf-8")


def rows(shown: str) -> dict[str, dict[str, str]]:
    """Return the cells of each system by heading."""
    lines = [line for line in shown.splitlines() if line.startswith("|")]
    headings, _, *others = [[c.strip() for c in line[1:-1].split("|")] for line in lines]
    return {cells[0]: dict(zip(headings, cells, strict=True)) for cells in others}


ANSWERS = ("yes/no accuracy", "factoid MRR", "ROUGE-2")


def test_markdown_has_one_row_per_system(run: Ablation) -> None:
    """BM25 finds the first of q1's documents 2 and 1, and all documents of the others."""
    shown = run.text("hybrid", "bm25", "--markdown")
    # Without losses, no note follows the table.
    assert shown.splitlines()[-1][0] == "|"
    found = rows(shown)
    assert list(found) == ["`hybrid`", "`bm25`"]
    cells = found["`bm25`"]
    assert cells["documents MAP@10"] == "0.833 (0.500-1.000)"
    assert {cells[name] for name in (*ANSWERS, "recall@100")} == {"-"}


def test_markdown_shows_answers_and_candidate_recall_on_request(
    run: Ablation,
) -> None:
    (cells,) = rows(run.text("bm25", "--answers", "--depth", "100", "--markdown")).values()
    assert "-" not in {cells[name] for name in ANSWERS}
    assert cells["recall@100"] == "0.833"


def test_markdown_separates_search_latency_from_the_wait(run: Ablation) -> None:
    run.text("bm25")
    rewrite(
        run.output / "bm25.jsonl",
        *({"timings_ms": {"pubmed": ms, "write": 500.0}, "wait_ms": ms + 501} for ms in (1, 2, 12)),
    )
    (system,) = run.json("bm25")["systems"]
    assert (system["latency_mean"], system["latency_median"]) == (5.0, 2.0)
    (cells,) = rows(run.text("bm25", "--markdown")).values()
    assert cells["search p50, p95 ms"] == "2, 11"
    assert cells["whole p50, p95 ms"] == "503, 512"


def test_markdown_lists_each_kind_of_degradation_once(run: Ablation) -> None:
    run.text("bm25")
    losses = (["pubmed: 3 of 20 PMIDs are lost"], ["pubmed: 1 of 9 PMIDs are lost"], [])
    rewrite(run.output / "bm25.jsonl", *({"degraded": loss} for loss in losses))
    shown = run.text("bm25", "--markdown").splitlines()
    assert shown[-1] == "- `bm25`: 2 of 3 questions: pubmed: N of N PMIDs are lost"
