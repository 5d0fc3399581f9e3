import math

import pytest
import torch
from torch.nn.functional import normalize

from pipelines.train.losses import allowed_labels_loss, contrastive_loss, mean_max_sim
from serve.search.rerank_passages import late_scores as served_max_sim

pytestmark = pytest.mark.model


def test_allowed_labels_loss_sums_the_probabilities() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]]))
    loss = allowed_labels_loss(logits, torch.tensor([[True, True, False]]))
    assert loss.item() == pytest.approx(-math.log(0.8), abs=1e-6)
    any_label = allowed_labels_loss(logits, torch.tensor([[True, True, True]]))
    assert any_label.item() == pytest.approx(0, abs=1e-6)


def test_contrastive_loss_is_small_for_correct_matches() -> None:
    none = torch.zeros(2, 2, dtype=torch.bool)
    own = torch.tensor([0, 1])
    right = contrastive_loss(torch.tensor([[9.0, 0.0], [0.0, 9.0]]), own, none)
    wrong = contrastive_loss(torch.tensor([[0.0, 9.0], [9.0, 0.0]]), own, none)
    assert right.item() < 0.01
    assert wrong.item() > 5


def test_other_gold_passages_are_not_negatives() -> None:
    scores = torch.tensor([[1.0, 9.0, 0.0]])
    gold = torch.tensor([[False, True, False]])
    loss = contrastive_loss(scores, torch.tensor([0]), gold)
    without = contrastive_loss(scores[:, [0, 2]], torch.tensor([0]), gold[:, [0, 2]])
    assert loss.item() == pytest.approx(without.item(), abs=1e-6)


def test_training_and_serving_compute_the_same_max_sim() -> None:
    torch.manual_seed(0)
    question = normalize(torch.randn(1, 3, 8), dim=-1)
    passages = normalize(torch.randn(2, 5, 8), dim=-1)
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    learned = mean_max_sim(question, torch.ones(1, 3, dtype=torch.bool), passages, mask)
    served = served_max_sim(question[0].numpy(), [passages[0].numpy(), passages[1, :2].numpy()])
    assert learned[0].tolist() == pytest.approx(served.tolist(), abs=1e-6)


def test_padding_of_a_question_does_not_change_max_sim() -> None:
    torch.manual_seed(0)
    question = normalize(torch.randn(1, 4, 8), dim=-1)
    passages = normalize(torch.randn(2, 5, 8), dim=-1)
    whole = torch.ones(2, 5, dtype=torch.bool)
    padded = mean_max_sim(question, torch.tensor([[True, True, False, False]]), passages, whole)
    short = mean_max_sim(question[:, :2], torch.ones(1, 2, dtype=torch.bool), passages, whole)
    assert torch.allclose(padded, short)
