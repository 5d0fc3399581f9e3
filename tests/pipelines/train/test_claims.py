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

pytestmark = [pytest.mark.model, pytest.mark.nightly]

CONTRADICT, NEUTRAL, SUPPORT = 0, 1, 2


def pairs(count: int) -> list[ClaimPair]:
    return [ClaimPair(f"claim {n}", f"evidence {e}", n % 3) for n in range(count) for e in (1, 2)]


def test_claim_rows_are_read_and_invalid_ones_refused(tmp_path: Path) -> None:
    row = {"claim": "it helps", "evidence": "it does", "label": "SUPPORT"}
    path = tmp_path / "claims.jsonl"
    path.write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    assert read_claims([path]) == [ClaimPair("it helps", "it does", SUPPORT)]
    for wrong in (row | {"label": "MAYBE"}, {"claim": "x"}):
        path.write_text(json.dumps(wrong), encoding="utf-8")
        said = r"claims.jsonl, line 1: .*CONTRADICT, NEUTRAL, SUPPORT"
        with pytest.raises(InputError, match=said):
            read_claims([path])


def test_claim_split_is_disjoint_and_stable() -> None:
    learned, measured = split_by_claim(pairs(200), 0.2)
    assert not {p.claim for p in learned} & {p.claim for p in measured}
    assert len(learned) + len(measured) == 400
    assert 40 < len(measured) < 130
    before = {p.claim for p in split_by_claim(pairs(50), 0.2)[1]}
    assert before <= {p.claim for p in measured}


def test_macro_f1_is_the_mean_of_the_labels_f1() -> None:
    found = measure_labels([SUPPORT, SUPPORT, NEUTRAL, CONTRADICT], [SUPPORT, NEUTRAL, NEUTRAL, 1])
    assert found["accuracy"] == 0.5
    assert found["SUPPORT F1"] == pytest.approx(2 / 3)
    assert found["NEUTRAL F1"] == 0.5
    assert found["CONTRADICT F1"] == 0.0
    assert found["macro F1"] == pytest.approx((2 / 3 + 0.5) / 3)


def test_long_evidence_is_truncated_and_the_claim_kept(tmp_path: Path) -> None:
    recipe = read_recipe(ClaimRecipe, "nli").model_copy(update={"max_tokens": 32})
    long = [ClaimPair("aspirin treats fever .", "blood " * 100, n) for n in range(3)]
    base = make_tiny_encoder(tmp_path)
    task = ClaimTask(base, long, long, recipe, "cpu")
    task.loss([0, 1, 2]).backward()
    assert {"macro F1", "support.threshold", "support.contradiction"} <= task.measure().keys()
    with pytest.raises(InputError, match="no pair to train on is NEUTRAL"):
        ClaimTask(base, [long[0], long[2]], [], recipe, "cpu")


def test_threshold_maximises_f1() -> None:
    shares = np.array([0.9, 0.8, 0.8, 0.4, 0.3, 0.1], np.float32)
    there = np.array([True, True, False, True, False, False])
    found = measure_threshold("t", shares, there)
    assert found == {
        "t": pytest.approx(0.4),
        "F1 at t": pytest.approx(6 / 7),
        "precision at t": pytest.approx(3 / 4),
    }
    # Equal probabilities share a threshold, and an absent label has none.
    same = np.array([0.5, 0.5, 0.5], np.float32)
    found = measure_threshold("t", same, np.array([True, False, False]))
    assert (found["t"], found["precision at t"]) == (0.5, pytest.approx(1 / 3))
    assert measure_threshold("t", same[:1], np.array([False])) == {}
