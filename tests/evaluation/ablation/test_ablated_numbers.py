"""The numbers are those of `citeray evaluate`, and differences are paired."""

from __future__ import annotations

import math

import pytest

from evaluation.ablation.tabulate_runs import covering
from evaluation.bioasq.read_bioasq import read_gold, read_run
from evaluation.bioasq.score_bioasq import score_run
from evaluation.bootstrap import Interval, differences, intervals
from tests.evaluation.ablation.ablation_runs import Ablation


def test_ablation_measures_equal_those_of_evaluate(run: Ablation) -> None:
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


def test_differences_are_paired_with_the_first_system(run: Ablation) -> None:
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
