"""Result types of an encoder; the module imports neither torch nor FAISS, which load slowly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster.index.tokens.codec import Codes, Halves

NO_CODES = np.empty((0, 0), np.uint8)


@dataclass(frozen=True, slots=True)
class Embedded:
    """`vectors` are unit vectors (n, d) of n texts; `codes` has each text's codes (m, bytes)."""

    vectors: NDArray[np.float32]
    codes: list[Codes]


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """A question's `vector` (d,) and its token vectors (n, width), all of length 1."""

    vector: NDArray[np.float32]
    tokens: Halves
