"""Verdicts of the ablation tables."""

from __future__ import annotations

from evaluation.ablation.tabulate_runs import FAILURES, verdict_on
from evaluation.bootstrap import Interval


def test_fewer_judge_failures_are_better() -> None:
    fewer = Interval(-0.2, -0.3, -0.1)
    assert verdict_on(FAILURES, fewer) == "better"
    assert verdict_on("documents MAP", fewer) == "worse"
