"""How wrong a model is: losses over its outputs, each the mean over what it judges."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

# Far below any score, yet finite: a row in which nothing is allowed must not become NaN.
_NEVER = -1e4


def allowed_labels_loss(logits: Tensor, allowed: Tensor) -> Tensor:
    """-log of the probability that a token's label is one of those its annotation allows.

    `logits` are (n, labels), `allowed` is (n, labels) of bool. With one label allowed it is cross
    entropy. A corpus that marks diseases alone allows, where it marks nothing, O and every
    chemical label: what it does not say is not learned as a no.
    """
    logits = logits.float()
    possible = logits.masked_fill(~allowed, _NEVER).logsumexp(-1)
    return (logits.logsumexp(-1) - possible).mean()


def contrastive_loss(scores: Tensor, own: Tensor, others: Tensor) -> Tensor:
    """Softmax cross entropy of each row's own column against those that are not its gold.

    `scores` are (questions, passages), `own` each row's gold column, and `others` (questions,
    passages) of bool marks further gold passages, which are no negatives (InfoNCE, van den Oord
    et al. 2018, with in-batch negatives as in Karpukhin et al. 2020, section 3.2).
    """
    return cross_entropy(scores.float().masked_fill(others, _NEVER), own)


def mean_max_sim(
    question: Tensor, question_mask: Tensor, passages: Tensor, passage_mask: Tensor
) -> Tensor:
    """(questions, passages): the mean over question tokens of the best cosine with a passage's.

    Token vectors are (texts, tokens, width) of length 1, masks (texts, tokens) of bool; what the
    late-interaction reranker scores with (Khattab and Zaharia 2020, section 3.3).
    """
    cosines = torch.einsum("qid,pjd->qpij", question, passages).float()
    best = cosines.masked_fill(~passage_mask[None, :, None, :], -1.0).amax(-1)
    kept = question_mask[:, None, :].float()
    return (best * kept).sum(-1) / kept.sum(-1).clamp_min(1)
