"""Result type of an encoder, in a module of its own because torch takes seconds to import."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster.index.tokens.codec import Codes

NO_CODES = np.empty((0, 0), np.uint8)


@dataclass(frozen=True, slots=True)
class Embedded:
    """`vectors` are unit vectors (n, d) of n texts; `codes` has each text's codes (m, bytes)."""

    vectors: NDArray[np.float32]
    codes: list[Codes]
