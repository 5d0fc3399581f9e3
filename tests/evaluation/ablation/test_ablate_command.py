"""Output, numbers and errors of `citeray ablate`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from evaluation.ablation.tabulate_runs import covering
from evaluation.bioasq.read_bioasq import read_gold, read_run
from evaluation.bioasq.score_bioasq import score_run
from evaluation.bootstrap import Interval, differences, intervals
from tests.evaluation.ablation.ablation_runs import ROWS, Ablation, FlakyService
from tests.evaluation.evaluate_command.small_runs import write

pytestmark = pytest.mark.slow


def test_repeated_system_has_one_run_and_record(run: Ablation) -> None:
    run.text("bm25", "hybrid", "bm25")
    names = ["bm25.json", "bm25.jsonl", "hybrid.json", "hybrid.jsonl"]
    assert sorted(path.name for path in run.output.iterdir()) == names
    rows = [line for line in run.log.splitlines() if line.startswith("bm25: ")]
    assert rows == ["bm25: answered 3 of 3, about 0 s left"]


def test_ablation_tables_show_values_intervals_and_verdicts(run: Ablation) -> None:
    """BM25 finds 1, 1/2 and 1 of the gold; hybrid finds all of it."""
    shown = " ".join(run.text("bm25", "hybrid", "--seeds", "3,4").split())
    assert "3 questions, index v000001, 95% bootstrap intervals (seed 3, 4)" in shown
    assert "differences from bm25" in shown
    assert "0.5000 to 1.0000" in shown
    assert "no difference shown" in shown
    assert "k = 10" in shown
    assert "Loss of each stage" not in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch"], "unknown system 'nosuch'; there are: aqams"),
        (["bm25", "--oracle", "luck"], "--oracle luck: unknown; there are: retrieve"),
        (["bm25", "--seeds=-1"], "must be whole numbers with commas"),
        (["bm25", "--seeds=0,,1"], "must be whole numbers with commas"),
        (["bm25", "--oracle", "retrieve"], "document 'x' does not end in a PMID"),
    ],
)
def test_bad_option_is_refused_before_writing(
    run: Ablation, arguments: list[str], words: str
) -> None:
    run.gold = write(run.folder / "gold.json", *ROWS[:2], {**ROWS[2], "documents": ["x"]})
    with pytest.raises(InputError, match=words):
        run.text(*arguments)
    assert not run.output.exists()


def test_missing_gold_or_questions_are_refused(run: Ablation, service: FlakyService) -> None:
    run.gold = write(run.folder / "gold.json", *ROWS[:1])
    with pytest.raises(InputError, match=r"gold\.json: lacks 2 of the 3 questions .* 'q1'"):
        run.text("bm25")
    run.questions = write(run.folder / "none.json")
    with pytest.raises(InputError, match=r"none\.json: contains no question to ask"):
        run.text("bm25")
    assert service.asked == []


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


def test_markdown_shows_answers_and_candidate_recall_on_request(run: Ablation) -> None:
    (cells,) = rows(run.text("bm25", "--answers", "--depth", "100", "--markdown")).values()
    assert "-" not in {cells[name] for name in ANSWERS}
    assert cells["recall@100"] == "0.833"


def test_markdown_shows_latencies_and_each_kind_of_degradation_once(run: Ablation) -> None:
    run.text("bm25")
    losses = (["pubmed: 3 of 20 PMIDs are lost"], ["pubmed: 1 of 9 PMIDs are lost"], [])
    changes = (
        {"timings_ms": {"pubmed": ms, "write": 500.0}, "wait_ms": ms + 501, "degraded": loss}
        for ms, loss in zip((1, 2, 12), losses, strict=True)
    )
    rewrite(run.output / "bm25.jsonl", *changes)
    (system,) = run.json("bm25")["systems"]
    assert (system["latency_mean"], system["latency_median"]) == (5.0, 2.0)
    shown = run.text("bm25", "--markdown")
    (cells,) = rows(shown).values()
    assert cells["search p50, p95 ms"] == "2, 11"
    assert cells["whole p50, p95 ms"] == "503, 512"
    assert shown.splitlines()[-1] == "- `bm25`: 2 of 3 questions: pubmed: N of N PMIDs are lost"


def test_measures_and_paired_differences_equal_those_of_evaluate(run: Ablation) -> None:
    found = run.json("hybrid", "bm25", "--answers")
    gold = read_gold(run.gold)
    scores = {
        name: score_run(gold, read_run(run.output / f"{name}.json", gold))
        for name in ("hybrid", "bm25")
    }
    for system in found["systems"]:
        expected = intervals(scores[system["name"]])
        shared = set(system["measures"]) & set(expected)
        assert {"documents MAP", "snippets F1", "factoid MRR", "yesno macro F1"} <= shared
        for name in shared:
            assert Interval(**system["measures"][name]) == expected[name]
    first, second = found["systems"]
    assert first["differences"] == {}
    difference = second["differences"]["documents MAP"]
    assert difference.pop("verdict") == "no difference shown"
    expected = differences(scores["bm25"], scores["hybrid"])
    assert Interval(**difference) == expected["documents MAP"]


def test_cutoff_uses_the_first_k_documents(run: Ablation) -> None:
    """BM25 finds only the first of q1's documents 2 and 1."""
    cutoffs = {row["k"]: row for row in run.json("bm25", "--k", "1", "--k", "20")["cutoffs"]}
    assert set(cutoffs) == {1, 20}
    # A run has at most ten snippets, so it has no measures at larger depths.
    assert "snippets recall" in cutoffs[1]["measures"]
    assert "snippets recall" not in cutoffs[20]["measures"]
    # Over q3, q1 and q2: 1 of 1, 1 of 2, 1 of 1.
    recall = cutoffs[1]["measures"]["documents recall"]["value"]
    assert recall == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert cutoffs[1]["measures"]["documents MAP"]["value"] == 1.0
    # "What does imatinib inhibit?" also finds warfarin, because its text contains "inhibits".
    assert cutoffs[20]["measures"]["documents precision"]["value"] < 1.0


def test_interval_covers_all_seeds() -> None:
    one = {"MAP": Interval(0.5, 0.3, 0.6), "none": Interval(math.nan, math.nan, math.nan)}
    other = {"MAP": Interval(0.5, 0.4, 0.7), "none": Interval(math.nan, math.nan, math.nan)}
    assert covering([one, other]) == {"MAP": Interval(0.5, 0.3, 0.7)}
