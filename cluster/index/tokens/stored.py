"""The coded tokens of a segment's passages: one flat file, mapped, of which few are read.

A passage's tokens lie one after another, and passages in the order of their rows; where each
ends, passages.arrow says.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cluster.errors import IndexFormatError
from cluster.index.tokens.codec import Codes, TokenCodec, Vectors

Rows = NDArray[np.int64]


class StoredTokens:
    """Maps `path`; `ends` (n,) says how many tokens passages 0 to i have together."""

    def __init__(self, path: Path, ends: NDArray[np.uint64], codec: TokenCodec) -> None:
        self.codec = codec
        self._ends = ends
        tokens = int(ends[-1]) if len(ends) else 0
        shape = (tokens, codec.bytes_a_token)
        if path.stat().st_size != tokens * codec.bytes_a_token:
            raise IndexFormatError(
                f"{path}: {path.stat().st_size} bytes where {tokens} tokens take "
                f"{tokens * codec.bytes_a_token}; build the index again"
            )
        # A file without a byte cannot be mapped.
        self._codes = (
            np.memmap(path, np.uint8, "r", shape=shape) if tokens else np.empty(shape, np.uint8)
        )

    def of(self, passages: Rows) -> tuple[Codes, Rows]:
        """The codes of passage rows, one passage's after the other's, and how many each has."""
        ends = self._ends[passages].astype(np.int64)
        begins = np.where(passages > 0, self._ends[passages - 1], 0).astype(np.int64)
        counts = ends - begins
        before = np.cumsum(counts) - counts
        places = np.repeat(begins - before, counts) + np.arange(counts.sum())
        return np.asarray(self._codes[places]), counts

    def best_cosines(self, question: Vectors, passages: Rows) -> Vectors:
        """For each passage row the best cosine with each token of `question`: (n, tokens).

        `question` (tokens, c) is as `TokenCodec.project` gives it. See `best_cosines` below.
        """
        codes, counts = self.of(passages)
        return best_cosines(self.codec.decode(codes), counts, question)


def best_cosines(tokens: Vectors, counts: Rows, question: Vectors) -> Vectors:
    """For each text the best cosine of its tokens with each of the question's: (n, question's).

    `tokens` (m, d) are those of texts, one's after the other's, and `counts` (n,) how many each
    has; `question` (q, d). A text without tokens has -inf throughout.
    """
    best = np.full((len(counts), len(question)), -np.inf, np.float32)
    filled = np.flatnonzero(counts)
    if len(filled) and len(question):
        starts = (np.cumsum(counts) - counts)[filled]
        best[filled] = np.maximum.reduceat(tokens @ question.T, starts)
    return best


def mean_max_sim(best: Vectors) -> Vectors:
    """The late-interaction score (n,) of `best_cosines`: the mean over the question's tokens.

    ColBERT's MaxSim (Khattab and Zaharia 2020, section 3.3) with a mean for its sum, so that
    questions of different lengths compare; 0 where either has no tokens.
    """
    if not best.shape[1]:
        return np.zeros(len(best), np.float32)
    scores = best.mean(axis=1)
    return np.asarray(np.where(np.isfinite(scores), scores, 0), np.float32)
