"""The encoded tokens of a segment's passages, in one memory-mapped file.

The tokens of a passage are contiguous, and passages are in the order of their rows;
passages.arrow has the end of each passage.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cluster.errors import IndexFormatError
from cluster.index.tokens.codec import Codes, TokenCodec, Vectors

Rows = NDArray[np.int64]


class StoredTokens:
    """Maps `path`; `ends` (n,) holds at i the total number of tokens of passages 0 to i."""

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
        # An empty file cannot be memory-mapped.
        self._codes = (
            np.memmap(path, np.uint8, "r", shape=shape) if tokens else np.empty(shape, np.uint8)
        )

    def of(self, passages: Rows) -> tuple[Codes, Rows]:
        """Return the concatenated codes of passage rows, and the number of tokens of each."""
        ends = self._ends[passages].astype(np.int64)
        begins = np.where(passages > 0, self._ends[passages - 1], 0).astype(np.int64)
        counts = ends - begins
        before = np.cumsum(counts) - counts
        places = np.repeat(begins - before, counts) + np.arange(counts.sum())
        return np.asarray(self._codes[places]), counts

    def best_cosines(self, question: Vectors, passages: Rows) -> Vectors:
        """Return the best cosine of each passage row with each token of `question`: (n, tokens).

        `question` (tokens, c) comes from `TokenCodec.project`. A passage without tokens has -inf.
        """
        codes, counts = self.of(passages)
        return best_cosines(self.codec.decode(codes), counts, question)


def best_cosines(tokens: Vectors, counts: Rows, question: Vectors) -> Vectors:
    """Return the best cosine of each text's tokens with each token of the question: (n, q).

    `tokens` (m, d) are the concatenated tokens of the texts, `counts` (n,) the number of tokens
    of each text, and `question` is (q, d). A text without tokens has -inf throughout.
    """
    best = np.full((len(counts), len(question)), -np.inf, np.float32)
    filled = np.flatnonzero(counts)
    if len(filled) and len(question):
        starts = (np.cumsum(counts) - counts)[filled]
        best[filled] = np.maximum.reduceat(tokens @ question.T, starts)
    return best


def mean_max_sim(best: Vectors) -> Vectors:
    """Return the late-interaction scores (n,): means of `best_cosines` over question tokens.

    This is ColBERT's MaxSim (Khattab and Zaharia 2020, section 3.3) with a mean instead of a sum,
    so that questions of different lengths are comparable; 0 if either side has no tokens.
    """
    if not best.shape[1]:
        return np.zeros(len(best), np.float32)
    scores = best.mean(axis=1)
    return np.asarray(np.where(np.isfinite(scores), scores, 0), np.float32)
