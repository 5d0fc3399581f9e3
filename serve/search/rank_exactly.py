"""Rank passages with an exact index built for one question (paper 000, section 3.2.2).

There are few candidates, so an exact index is fast enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import faiss
import numpy as np

from cluster.index.vectors import Vectors
from cluster.records import Passage

TOP = 20


def distinct(passages: Sequence[Passage]) -> list[Passage]:
    """Remove duplicates, that is, passages with equal text, PMID, section and bounds."""
    return list(dict.fromkeys(passages))


def rank_exactly(
    passages: Sequence[Passage], vectors: Vectors, question: Vectors, top: int = TOP
) -> list[tuple[Passage, float]]:
    """Return the `top` passages with their inner product with `question` (d,), best first.

    `vectors` (n, d) are those of `passages`. For vectors of length 1, as used here, the inner
    product is the cosine. Ties go to the passage that comes first.
    """
    if not len(passages):
        return []
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(np.ascontiguousarray(vectors, np.float32))
    wanted = np.ascontiguousarray(question.reshape(1, -1), np.float32)
    scores, rows = index.search(wanted, min(top, len(passages)))
    order = np.lexsort((rows[0], -scores[0]))
    return [(passages[rows[0][place]], float(scores[0][place])) for place in order]
