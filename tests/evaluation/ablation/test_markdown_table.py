"""`citeray ablate --markdown` over runs that are stored: one line for each system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.ablation.ablation_runs import Ablation

pytestmark = pytest.mark.slow


def rewrite(record: Path, *changes: dict[str, Any]) -> None:
    """Changes the replies of a stored run, in their order."""
    head, *rows = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    changed = [{**row, **change} for row, change in zip(rows, changes, strict=True)]
    # A run kept before waits were has none.
    changed = [{k: v for k, v in row.items() if (k, v) != ("wait_ms", None)} for row in changed]
    record.write_text("".join(json.dumps(x) + "\n" for x in (head, *changed)), encoding="utf-8")


def rows(shown: str) -> dict[str, dict[str, str]]:
    """The cells of each system by their headings."""
    lines = [line for line in shown.splitlines() if line.startswith("|")]
    headings, _, *others = [[c.strip() for c in line[1:-1].split("|")] for line in lines]
    return {cells[0]: dict(zip(headings, cells, strict=True)) for cells in others}


ANSWERS = ("yes/no accuracy", "factoid MRR", "ROUGE-2")


def test_every_system_has_a_line_with_its_measures(run: Ablation) -> None:
    """BM25 finds of q1's two documents, 2 and 1, only the first, and all of the others'."""
    shown = run.text("hybrid", "bm25", "--markdown")
    # Without losses nothing stands below the table.
    assert shown.splitlines()[-1][0] == "|"
    found = rows(shown)
    assert list(found) == ["`hybrid`", "`bm25`"]
    cells = found["`bm25`"]
    assert cells["documents MAP@10"] == "0.833 (0.500-1.000)"
    assert {cells[name] for name in (*ANSWERS, "recall@100")} == {"-"}


def test_answers_and_recall_of_the_candidates_are_measured_where_they_were_asked_for(
    run: Ablation,
) -> None:
    (cells,) = rows(run.text("bm25", "--answers", "--depth", "100", "--markdown")).values()
    assert "-" not in {cells[name] for name in ANSWERS}
    assert cells["recall@100"] == "0.833"


def test_the_search_has_its_own_latency_beside_the_whole_wait(run: Ablation) -> None:
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


def test_losses_stand_below_each_kind_once(run: Ablation) -> None:
    run.text("bm25")
    losses = (["pubmed: 3 of 20 PMIDs are lost"], ["pubmed: 1 of 9 PMIDs are lost"], [])
    rewrite(run.output / "bm25.jsonl", *({"degraded": loss} for loss in losses))
    shown = run.text("bm25", "--markdown").splitlines()
    assert shown[-1] == "- `bm25`: 2 of 3 questions: pubmed: N of N PMIDs are lost"
