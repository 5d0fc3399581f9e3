"""Output and errors of `citeray ablate`."""

from __future__ import annotations

import pytest

from cluster.errors import InputError
from tests.evaluation.ablation.ablation_runs import ROWS, Ablation, FlakyService

pytestmark = pytest.mark.slow


def test_repeated_system_has_one_run_and_record(run: Ablation) -> None:
    run.text("bm25", "hybrid", "bm25")
    names = ["bm25.json", "bm25.jsonl", "hybrid.json", "hybrid.jsonl"]
    assert sorted(path.name for path in run.output.iterdir()) == names
    told = [line for line in run.log.splitlines() if line.startswith("bm25: ")]
    assert told == ["bm25: answered 3 of 3, about 0 s left"]


def test_ablation_tables_show_values_intervals_and_verdicts(run: Ablation) -> None:
    """BM25 finds 1, 1/2 and 1 of the gold; hybrid finds all of it."""
    shown = " ".join(run.text("bm25", "hybrid", "--seeds", "3,4").split())
    assert "3 questions, index v000001, 95% bootstrap intervals (seed 3, 4)" in shown
    assert "differences from bm25" in shown
    assert "0.5000 to 1.0000" in shown
    assert "no difference shown" in shown
    assert "k = 10" in shown
    assert "Lost at each stage" not in shown


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
    run.gold = run.write(run.folder / "gold.json", [*ROWS[:2], {**ROWS[2], "documents": ["x"]}])
    with pytest.raises(InputError, match=words):
        run.text(*arguments)
    assert not run.output.exists()


def test_missing_gold_or_questions_are_refused(run: Ablation, service: FlakyService) -> None:
    run.gold = run.write(run.folder / "gold.json", ROWS[:1])
    with pytest.raises(InputError, match=r"gold\.json: lacks 2 of the 3 questions .* 'q1'"):
        run.text("bm25")
    run.questions = run.write(run.folder / "none.json", [])
    with pytest.raises(InputError, match=r"none\.json: contains no question to ask"):
        run.text("bm25")
    assert service.asked == []
