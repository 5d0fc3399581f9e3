"""Stand-in encoder for benchmarks of everything but the encoder: bags of words in 384 dimensions.

The vector of a passage is the mean of one random vector per word, drawn in 32 dimensions and
projected to 384 by one matrix. Passages that share words are near each other, as with a real
encoder. The encoder is not trained and takes about 20 microseconds per passage. The difficulty of a
nearest-neighbour search depends on the intrinsic dimension (Levina and Bickel 2004, k = 20; here of
16,698 passages): 7 for MiniLM's vectors of real abstracts, 22 for these vectors of generated
abstracts, and 54 for means of independent 384-dimensional vectors, which no encoder produces.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import embedding_bag, normalize

from cluster.models.embedded import NO_CODES, Embedded

DIMENSIONS = 384
LATENT = 32
_ROWS = 1 << 16


class BagOfWords:
    """Encoder with the interface of `cluster.models.encoder.Encoder`.

    Returns unit vectors of shape (n, 384) in float32.
    """

    dtype = "float32"

    def __init__(self, seed: int = 0, threads: int = 1) -> None:
        torch.set_num_threads(threads)
        generator = torch.Generator().manual_seed(seed)
        latent = torch.randn(_ROWS, LATENT, generator=generator)
        self._table = latent @ torch.randn(LATENT, DIMENSIONS, generator=generator)
        self._rows: dict[str, int] = {}

    def _row(self, word: str) -> int:
        row = self._rows.get(word)
        if row is None:
            row = self._rows[word] = zlib.crc32(word.encode()) % _ROWS
        return row

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        bags = [[self._row(word) for word in text.split()] for text in texts]
        offsets = np.cumsum([0, *(len(bag) for bag in bags[:-1])])
        rows = torch.tensor([row for bag in bags for row in bag])
        means = embedding_bag(rows, self._table, torch.from_numpy(offsets), mode="mean")
        found: npt.NDArray[np.float32] = normalize(means, dim=-1).numpy()
        return found

    def embed(self, texts: Sequence[str], _: object) -> Embedded:
        """Embed texts as `encode` does, without token codes."""
        return Embedded(self.encode(texts), [NO_CODES] * len(texts))
