"""Passages ranked by an exact index made for one question (paper 000, section 3.2.2).

The candidates are few, so that an index which misses none costs nothing to speak of.
"""

from __future__ import annotations

from collections.abc import Sequence

import faiss
import numpy as np

from cluster.index.vectors import Vectors
from cluster.records import Passage

TOP = 20


def distinct(passages: Sequence[Passage]) -> list[Passage]:
    """Each passage once: those of one text, PMID, section and bounds are the same."""
    return list(dict.fromkeys(passages))


def rank_exactly(
    passages: Sequence[Passage], vectors: Vectors, question: Vectors, top: int = TOP
) -> list[tuple[Passage, float]]:
    """The `top` passages by inner product with `question` (d,), best first, with it.

    `vectors` (n, d) are those of `passages`; of length 1, as all here are, the product is
    the cosine. Ties go to the passage that comes first.
    """
    if not len(passages):
        return []
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(np.ascontiguousarray(vectors, np.float32))
    wanted = np.ascontiguousarray(question.reshape(1, -1), np.float32)
    scores, rows = index.search(wanted, min(top, len(passages)))
    order = np.lexsort((rows[0], -scores[0]))
    return [(passages[rows[0][place]], float(scores[0][place])) for place in order]
