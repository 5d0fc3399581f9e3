from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cluster.errors import InputError
from pipelines.train.examples.read_claims import ClaimPair, read_claims, split_by_claim
from pipelines.train.recipe import ClaimRecipe, read_recipe
from pipelines.train.tasks.claim_task import ClaimTask, measure_labels, measure_threshold
from tests.tiny_models import make_tiny_encoder

pytestmark = [pytest.mark.durability, pytest.mark.model, pytest.mark.nightly]

CONTRADICT, NEUTRAL, SUPPORT = 0, 1, 2


def pairs(count: int) -> list[ClaimPair]:
    return [ClaimPair(f"claim {n}", f"evidence {e}", n % 3) for n in range(count) for e in (1, 2)]


def test_rows_are_read_with_their_labels(tmp_path: Path) -> None:
    row = {"claim": "it helps", "evidence": "it does", "label": "SUPPORT"}
    path = tmp_path / "claims.jsonl"
    path.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    assert read_claims([path]) == [ClaimPair("it helps", "it does", SUPPORT)]


@pytest.mark.parametrize("row", [{"claim": "x", "evidence": "y", "label": "MAYBE"}, {"claim": "x"}])
def test_row_of_another_form_is_refused(tmp_path: Path, row: dict[str, str]) -> None:
    path = tmp_path / "claims.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(InputError, match=r"claims.jsonl, line 1: .*CONTRADICT, NEUTRAL, SUPPORT"):
        read_claims([path])


def test_no_claim_is_on_both_sides() -> None:
    learned, measured = split_by_claim(pairs(200), 0.2)
    assert not {p.claim for p in learned} & {p.claim for p in measured}
    assert len(learned) + len(measured) == 400
    assert 40 < len(measured) < 130


def test_claim_stays_on_its_side_when_others_come() -> None:
    before = {p.claim for p in split_by_claim(pairs(50), 0.2)[1]}
    after = {p.claim for p in split_by_claim(pairs(100), 0.2)[1]}
    assert before <= after


def test_macro_f1_is_the_mean_over_the_labels() -> None:
    found = measure_labels([SUPPORT, SUPPORT, NEUTRAL, CONTRADICT], [SUPPORT, NEUTRAL, NEUTRAL, 1])
    assert found["accuracy"] == 0.5
    assert found["SUPPORT F1"] == pytest.approx(2 / 3)
    assert found["NEUTRAL F1"] == 0.5
    assert found["CONTRADICT F1"] == 0.0
    assert found["macro F1"] == pytest.approx((2 / 3 + 0.5) / 3)


def test_label_that_no_pair_has_is_named(tmp_path: Path) -> None:
    recipe = read_recipe(ClaimRecipe, "nli")
    with pytest.raises(InputError, match="no pair to train on is NEUTRAL"):
        ClaimTask(tmp_path, [ClaimPair("a", "b", 0), ClaimPair("a", "b", 2)], [], recipe, "cpu")


def test_evidence_that_is_too_long_is_cut_and_the_claim_is_kept(tmp_path: Path) -> None:
    recipe = read_recipe(ClaimRecipe, "nli").model_copy(update={"max_tokens": 32})
    long = [ClaimPair("aspirin treats fever .", "blood " * 100, n) for n in range(3)]
    task = ClaimTask(make_tiny_encoder(tmp_path), long, long, recipe, "cpu")
    task.loss([0, 1, 2]).backward()
    assert set(task.measure()) == {
        "accuracy", "macro F1", "CONTRADICT F1", "NEUTRAL F1", "SUPPORT F1",
        "support.threshold", "F1 at support.threshold", "precision at support.threshold",
        "support.contradiction", "F1 at support.contradiction",
        "precision at support.contradiction",
    }  # fmt: skip


def test_threshold_is_where_the_label_is_told_best() -> None:
    shares = np.array([0.9, 0.8, 0.8, 0.4, 0.3, 0.1], np.float32)
    there = np.array([True, True, False, True, False, False])
    found = measure_threshold("t", shares, there)
    assert found == {
        "t": pytest.approx(0.4),
        "F1 at t": pytest.approx(6 / 7),
        "precision at t": pytest.approx(3 / 4),
    }


def test_pairs_of_one_share_pass_a_threshold_together() -> None:
    shares = np.array([0.5, 0.5, 0.5], np.float32)
    found = measure_threshold("t", shares, np.array([True, False, False]))
    assert (found["t"], found["precision at t"]) == (0.5, pytest.approx(1 / 3))


def test_label_that_is_not_there_has_no_threshold() -> None:
    assert measure_threshold("t", np.array([0.5], np.float32), np.array([False])) == {}
