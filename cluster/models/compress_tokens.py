"""Quantise token vectors with torch on their device, so that only codes are copied from it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.cluster.hierarchy import fcluster, linkage
from torch import Tensor
from torch.nn.functional import normalize

from cluster.index.tokens.codec import TokenCodec

# Takes unit token vectors (n, width), text by text, and the number of tokens of each text. Returns
# the codes (m, bytes), and the number of codes of each text.
Compress = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def make_compress(codec: TokenCodec, device: str, pool: int = 1) -> Compress:
    """Return a function that quantises token vectors on `device`.

    It pools `pool` tokens of a text, on average, into one vector first.
    """
    axes = torch.from_numpy(codec.components).to(device).T.contiguous()
    bounds = torch.from_numpy(codec.bounds).to(device)
    per_byte = 8 // codec.bits
    shifts = codec.bits * torch.arange(per_byte, device=device)

    def compress(tokens: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
        if pool > 1:
            tokens, counts = pool_tokens(tokens, counts, pool)
        projected = normalize(tokens @ axes, dim=-1)
        places = torch.zeros(projected.shape, dtype=torch.int64, device=projected.device)
        for bound in bounds.T:
            places += projected > bound
        grouped = places.reshape(len(tokens), codec.bytes_a_token, per_byte)
        return (grouped << shifts).sum(-1).to(torch.uint8), counts

    return compress


def pool_tokens(tokens: Tensor, counts: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """Replace each cluster of similar tokens of a text by its mean, normalised.

    Ward clustering, with 1 / `factor` as many clusters as tokens (Clavie et al. 2024, token
    pooling).
    """
    pooled = [_pooled(part, factor) for part in torch.split(tokens, counts.tolist())]
    return torch.cat(pooled), torch.tensor([len(part) for part in pooled])


def _pooled(tokens: Tensor, factor: int) -> Tensor:
    wanted = -(-len(tokens) // factor)
    if wanted >= len(tokens) or wanted < 1:
        return tokens
    labels = fcluster(linkage(tokens.cpu().numpy(), "ward"), wanted, "maxclust")
    _, labels = np.unique(labels, return_inverse=True)
    sums = torch.zeros(labels.max() + 1, tokens.shape[1], device=tokens.device)
    sums.index_add_(0, torch.from_numpy(labels).to(tokens.device), tokens)
    return normalize(sums, dim=-1)
