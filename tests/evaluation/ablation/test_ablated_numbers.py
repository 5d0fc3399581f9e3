"""The numbers are those of `citeray evaluate`, and differences are paired."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cluster.answers import Question
from cluster.settings.presets import load_system
from evaluation.ablation.ask_graph import Ask, Plan
from evaluation.ablation.print_tables import print_tables
from evaluation.ablation.run_plans import Run, complete_runs
from evaluation.ablation.tabulate_runs import covering, tabulate_runs
from evaluation.bioasq.read_bioasq import read_gold, read_run
from evaluation.bioasq.score_bioasq import score_run
from evaluation.bootstrap import Interval, differences, intervals
from serve.graph.watch_stages import StageLostError
from tests.evaluation.ablation.ablation_runs import ROWS, Ablation


def test_the_numbers_are_those_of_evaluate_on_the_same_run_file(run: Ablation) -> None:
    found = run.json("bm25", "citeray", "--answers")
    gold = read_gold(run.gold)
    for system in found["systems"]:
        scores = score_run(gold, read_run(run.output / f"{system['name']}.json", gold))
        expected = intervals(scores)
        shared = set(system["measures"]) & set(expected)
        assert {"documents MAP", "snippets F1", "factoid MRR", "yesno macro F1"} <= shared
        for name in shared:
            interval = system["measures"][name]
            assert Interval(**interval) == expected[name]


def test_differences_are_paired_and_from_the_first_system(run: Ablation) -> None:
    found = run.json("hybrid", "bm25")
    gold = read_gold(run.gold)
    one, other = (
        score_run(gold, read_run(run.output / f"{name}.json", gold)) for name in ("bm25", "hybrid")
    )
    first, second = found["systems"]
    assert first["differences"] == {}
    difference = second["differences"]["documents MAP"]
    assert difference.pop("verdict") == "no difference shown"
    assert Interval(**difference) == differences(one, other)["documents MAP"]


def test_a_cutoff_has_the_first_k_documents_alone(run: Ablation) -> None:
    """BM25 finds of q1's two documents, 2 and 1, only the first."""
    cutoffs = {row["k"]: row for row in run.json("bm25", "--k", "1", "--k", "20")["cutoffs"]}
    assert set(cutoffs) == {1, 20}
    # There are no numbers beyond ten snippets.
    assert "snippets recall" in cutoffs[1]["measures"]
    assert "snippets recall" not in cutoffs[20]["measures"]
    # Over q3, q1 and q2: 1 of 1, 1 of 2, 1 of 1.
    recall = cutoffs[1]["measures"]["documents recall"]["value"]
    assert recall == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert cutoffs[1]["measures"]["documents MAP"]["value"] == 1.0
    # "What does imatinib inhibit?" also finds warfarin, which inhibits too.
    assert cutoffs[20]["measures"]["documents precision"]["value"] < 1.0


def test_latency_is_that_of_the_retrieval_stages_alone(tmp_path: Path) -> None:
    run = Run(Plan(load_system("bm25"), 10, False), tmp_path / "bm25.jsonl", {})
    timings: list[dict[str, float]] = [
        {"encode": 1.0, "retrieve": 2.0, "fetch": 0.5, "snippets": 40.0, "write": 900.0},
        {"expand": 1.0, "statistics": 2.0, "rerank": 30.0},
    ]
    run.replies = {str(n): {"timings_ms": t} for n, t in enumerate(timings)}
    assert run.latencies() == [3.5, 33.0]


def test_the_widest_interval_of_all_seeds_is_shown() -> None:
    one = {"MAP": Interval(0.5, 0.3, 0.6), "none": Interval(math.nan, math.nan, math.nan)}
    other = {"MAP": Interval(0.5, 0.4, 0.7), "none": Interval(math.nan, math.nan, math.nan)}
    assert covering([one, other]) == {"MAP": Interval(0.5, 0.3, 0.7)}


def with_entries(folder: Path, name: str, answers: list[dict[str, Any]]) -> Run:
    """A run that found the gold documents, complete as if it had been asked."""
    plan = Plan(load_system(name), 10, True)
    run = Run(plan, folder / f"{name}.jsonl", {}, "v000001")
    for question, answer in zip(ROWS, answers, strict=True):
        entry = {key: question[key] for key in ("id", "type", "body", "documents")} | answer
        ranked = [int(document.rpartition("/")[2]) for document in question["documents"]]
        reply = {"entry": entry, "ranked": ranked, "timings_ms": {}, "degraded": []}
        run.replies[question["id"]] = reply

    @contextmanager
    def closed() -> Iterator[Ask]:
        raise StageLostError("a complete run was asked")
        yield

    questions = [Question(question["id"], question["body"]) for question in ROWS]
    complete_runs([run], questions, closed, Console(file=io.StringIO()))
    return run


def test_a_measure_that_one_system_lacks_is_a_dash(tmp_path: Path) -> None:
    """A run whose factoid has no gold would lack it; here the second has no answers."""
    gold_file = tmp_path / "gold.json"
    gold_file.write_text(json.dumps({"questions": ROWS}), encoding="utf-8")
    runs = [
        with_entries(tmp_path, "bm25", [{"exact_answer": "yes"}, {"exact_answer": [["a"]]}, {}]),
        with_entries(tmp_path, "dense", [{}, {}, {}]),
    ]
    out = Console(file=io.StringIO(), width=200)
    print_tables(out, tabulate_runs(runs, read_gold(gold_file), [10], [0]))
    assert isinstance(out.file, io.StringIO)
    cells = next(x for x in out.file.getvalue().splitlines() if "yesno accuracy" in x)
    assert cells.split("│")[3].strip() == "-"
