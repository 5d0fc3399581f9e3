"""What an encoder makes of texts; apart from it, since torch takes seconds to import."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cluster.index.tokens.codec import Codes

NO_CODES = np.empty((0, 0), np.uint8)


@dataclass(frozen=True, slots=True)
class Embedded:
    """Of texts: `vectors` (n, d) of length 1, and of each text its tokens' codes (m, bytes)."""

    vectors: NDArray[np.float32]
    codes: list[Codes]
