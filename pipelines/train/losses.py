"""Training losses and scores of model outputs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

# Far below any score, but finite, so that a row without an allowed label does not become NaN.
_NEVER = -1e4


def allowed_labels_loss(logits: Tensor, allowed: Tensor) -> Tensor:
    """Return the mean of -log of the probability that a token's label is an allowed one.

    `logits` are (n, labels), `allowed` is (n, labels) of bool. With one allowed label this is cross
    entropy. In a corpus that marks only diseases, an unmarked token may have O or any chemical
    label, so that the model does not learn missing annotations as negatives.
    """
    logits = logits.float()
    possible = logits.masked_fill(~allowed, _NEVER).logsumexp(-1)
    return (logits.logsumexp(-1) - possible).mean()


def contrastive_loss(scores: Tensor, own: Tensor, others: Tensor) -> Tensor:
    """Return the softmax cross entropy of each question's gold column against its negatives.

    `scores` are (questions, passages), `own` is the gold column of each, and `others` (questions,
    passages) of bool marks further gold passages, which are not negatives (InfoNCE, van den Oord
    et al. 2018, with in-batch negatives as in Karpukhin et al. 2020, section 3.2).
    """
    return cross_entropy(scores.float().masked_fill(others, _NEVER), own)


def mean_max_sim(
    question: Tensor, question_mask: Tensor, passages: Tensor, passage_mask: Tensor
) -> Tensor:
    """Return MaxSim scores (questions, passages), as used by the late-interaction reranker.

    A score is the mean over question tokens of the best cosine with a token of the passage (Khattab
    and Zaharia 2020, section 3.3). Token vectors are (texts, tokens, width) of length 1, masks
    (texts, tokens) of bool.
    """
    cosines = torch.einsum("qid,pjd->qpij", question, passages).float()
    best = cosines.masked_fill(~passage_mask[None, :, None, :], -1.0).amax(-1)
    kept = question_mask[:, None, :].float()
    return (best * kept).sum(-1) / kept.sum(-1).clamp_min(1)
