"""`citeray ablate --markdown` over runs that are stored: one line for each system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.evaluation.ablation.ablation_runs import Ablation
from tests.serve.http_server import serving
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow


def rewrite(record: Path, *changes: dict[str, Any]) -> None:
    """Changes the replies of a stored run, in their order."""
    head, *rows = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    changed = [{**row, **change} for row, change in zip(rows, changes, strict=True)]
    record.write_text("".join(json.dumps(x) + "\n" for x in (head, *changed)), encoding="utf-8")


def rows(shown: str) -> dict[str, dict[str, str]]:
    """The cells of each system by their headings."""
    lines = [line for line in shown.splitlines() if line.startswith("|")]
    headings, _, *others = [[c.strip() for c in line[1:-1].split("|")] for line in lines]
    return {cells[0]: dict(zip(headings, cells, strict=True)) for cells in others}


def test_every_system_has_a_line_with_its_measures(run: Ablation) -> None:
    """BM25 finds of q1's two documents, 2 and 1, only the first, and all of the others'."""
    found = rows(run.text("hybrid", "bm25", "--markdown"))
    assert list(found) == ["`hybrid`", "`bm25`"]
    assert found["`bm25`"]["documents MAP@10"] == "0.833 (0.500-1.000)"


def test_answers_that_were_not_asked_for_are_dashes(run: Ablation) -> None:
    (cells,) = rows(run.text("bm25", "--markdown")).values()
    assert {cells[name] for name in ("yes/no accuracy", "factoid MRR", "ROUGE-2")} == {"-"}


def test_answers_have_their_measures(run: Ablation) -> None:
    (cells,) = rows(run.text("bm25", "--answers", "--markdown")).values()
    assert "-" not in {cells[name] for name in ("yes/no accuracy", "factoid MRR", "ROUGE-2")}


@pytest.mark.parametrize(("options", "recall"), [((), "-"), (("--depth", "100"), "0.833")])
def test_recall_of_the_candidates_is_known_where_they_were_asked_for(
    run: Ablation, options: tuple[str, ...], recall: str
) -> None:
    (cells,) = rows(run.text("bm25", "--markdown", *options)).values()
    assert cells["recall@100"] == recall


def test_the_search_has_its_own_latency_beside_the_whole_wait(run: Ablation) -> None:
    run.text("bm25")
    rewrite(
        run.output / "bm25.jsonl",
        *({"timings_ms": {"pubmed": ms, "write": 500.0}, "wait_ms": ms + 501} for ms in (1, 2, 12)),
    )
    (cells,) = rows(run.text("bm25", "--markdown")).values()
    assert cells["search p50, p95 ms"] == "2, 11"
    assert cells["whole p50, p95 ms"] == "503, 512"


def test_a_run_kept_before_waits_were_counts_its_stages(run: Ablation) -> None:
    run.text("bm25")
    record = run.output / "bm25.jsonl"
    head, *replies = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    for reply in replies:
        del reply["wait_ms"]
        reply["timings_ms"] = {"retrieve": 3.0, "write": 4.0}
    record.write_text("".join(json.dumps(x) + "\n" for x in (head, *replies)), encoding="utf-8")
    (system,) = run.json("bm25")["systems"]
    assert (system["whole_median"], system["whole_p95"]) == (7.0, 7.0)


def test_a_stage_has_its_median_over_the_questions_that_asked_it(run: Ablation) -> None:
    run.text("bm25")
    timings = ({"rank": 1.0}, {"rank": 3.0}, {"retrieve": 9.0})
    rewrite(run.output / "bm25.jsonl", *({"timings_ms": each} for each in timings))
    assert run.json("bm25")["systems"][0]["stages"] == {"rank": 2.0, "retrieve": 9.0}


def test_losses_stand_below_each_kind_once(run: Ablation) -> None:
    run.text("bm25")
    losses = (["pubmed: 3 of 20 PMIDs are lost"], ["pubmed: 1 of 9 PMIDs are lost"], [])
    rewrite(run.output / "bm25.jsonl", *({"degraded": loss} for loss in losses))
    shown = run.text("bm25", "--markdown").splitlines()
    assert shown[-1] == "- `bm25`: 2 of 3 questions: pubmed: N of N PMIDs are lost"


def test_without_losses_nothing_stands_below(tmp_path: Path) -> None:
    with serving(create_api(SmallService(), load_settings().serve)) as port:
        assert Ablation(tmp_path, port).text("bm25", "--markdown").splitlines()[-1][0] == "|"
