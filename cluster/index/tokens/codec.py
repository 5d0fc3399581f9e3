"""Encodes token vectors in a few bytes: their first principal components, a few bits each.

64 components at 2 bits (16 bytes per token) rank as well as the vectors themselves; see
docs/benchmarks.md. Only stored tokens are encoded, not those of a question. ColBERTv2 (Santhanam
et al. 2022) keeps 1 or 2 bits of each dimension's residual from a centroid; here principal
components replace the centroids, so that scoring needs no clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from cluster.errors import IndexFormatError
from cluster.storage.locations import Location

Vectors = NDArray[np.float32]
# Type in which a question's tokens are sent to the shards.
Halves = NDArray[np.float16]
Codes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class TokenCodec:
    """`components` (c, width), each with `bounds` (c, 2^bits - 1) and `levels` (c, 2^bits).

    A value is encoded as the number of its interval between bounds, and decoded as the level of
    that interval. A byte holds 8 / bits components, the first in its lowest bits.
    """

    components: Vectors
    bounds: Vectors
    levels: Vectors

    @property
    def bits(self) -> int:
        """Number of bits per component: 1, 2, 4 or 8."""
        return int(self.levels.shape[1]).bit_length() - 1

    @property
    def bytes_a_token(self) -> int:
        """Length of a code in bytes."""
        return len(self.components) * self.bits // 8

    def project(self, tokens: Vectors | Halves) -> Vectors:
        """Return the components (n, c), of length 1, of token vectors (n, width)."""
        return _unit(tokens.astype(np.float32, copy=False) @ self.components.T)

    def code(self, tokens: Vectors) -> Codes:
        """Return the codes (n, bytes_a_token) of token vectors (n, width) of length 1.

        `cluster.models.compress_tokens` does the same on the device that computed the vectors.
        """
        projected, per_byte = self.project(tokens), 8 // self.bits
        places = np.zeros(projected.shape, np.uint8)
        for bound in self.bounds.T:
            places += projected > bound
        grouped = places.reshape(len(tokens), self.bytes_a_token, per_byte)
        shifts = (self.bits * np.arange(per_byte)).astype(np.uint8)
        codes: Codes = np.bitwise_or.reduce(grouped << shifts, axis=-1)
        return codes

    def decode(self, codes: Codes) -> Vectors:
        """Return the levels (n, c) for `codes` (n, bytes_a_token)."""
        if not len(codes):
            return np.empty((0, len(self.components)), np.float32)
        # `take` of whole items copies the values of a byte at once; indexing is slower.
        places = codes + (256 * np.arange(self.bytes_a_token, dtype=np.int32))
        return self._by_byte.take(places).view(np.float32)

    @cached_property
    def _by_byte(self) -> NDArray[np.void]:
        """Decoded values for each byte of a code: 256 items of 8 / bits numbers per byte."""
        size, per_byte = self.bytes_a_token, 8 // self.bits
        places = (np.arange(256)[:, None] >> (self.bits * np.arange(per_byte))) & (
            (1 << self.bits) - 1
        )
        levels = self.levels.reshape(size, per_byte, -1)
        table = np.stack([levels[:, k, places[:, k]] for k in range(per_byte)], axis=-1)
        return table.astype(np.float32).reshape(-1).view(f"V{4 * per_byte}")

    def to_bytes(self) -> bytes:
        """Return the codec as a safetensors file; equal codecs give equal bytes."""
        arrays = {"components": self.components, "bounds": self.bounds, "levels": self.levels}
        return save({k: np.ascontiguousarray(v, np.float32) for k, v in arrays.items()})


def learn_codec(sample: Vectors, components: int, bits: int) -> TokenCodec:
    """Learn a codec from a sample (n, width) of token vectors of length 1.

    The components are those of the uncentred vectors, so that inner products are preserved; the
    bounds are evenly spaced quantiles, and the levels the means between them. Raises ValueError
    if the sample is empty.
    """
    if not len(sample):
        raise ValueError("no token vectors to learn a codec from")
    width = sample.shape[1]
    moments = sample.T.astype(np.float64) @ sample
    chosen = np.linalg.eigh(moments)[1][:, ::-1][:, : min(components, width)].T
    axes = np.zeros((components, width), np.float32)
    axes[: len(chosen)] = chosen
    projected = _unit(sample @ axes.T)
    shares = np.arange(1, 1 << bits) / (1 << bits)
    bounds = np.quantile(projected, shares, axis=0).T.astype(np.float32)
    levels = np.zeros((components, 1 << bits), np.float32)
    for axis, column in enumerate(projected.T):
        places = np.searchsorted(bounds[axis], column)
        counts = np.bincount(places, minlength=1 << bits)
        sums = np.bincount(places, column, minlength=1 << bits)
        # The level of an interval without samples is an adjacent bound.
        empty = np.append(bounds[axis], bounds[axis][-1])
        levels[axis] = np.where(counts > 0, sums / np.maximum(counts, 1), empty)
    return TokenCodec(axes, bounds, levels)


def read_codec(file: Location) -> TokenCodec:
    """Read a codec written by `to_bytes`. Raises IndexFormatError if `file` is not one."""
    try:
        arrays = load(file.read_bytes())
        codec = TokenCodec(arrays["components"], arrays["bounds"], arrays["levels"])
        _check(codec)
    except (SafetensorError, KeyError, ValueError) as error:
        raise IndexFormatError(
            f"{file}: not a codec of token vectors ({error}); build the index again"
        ) from error
    return codec


def _check(codec: TokenCodec) -> None:
    count = len(codec.components)
    steps = 1 << codec.bits
    shapes = (codec.components.ndim, codec.bounds.shape, codec.levels.shape)
    if shapes != (2, (count, steps - 1), (count, steps)) or codec.bits not in (1, 2, 4, 8):
        raise ValueError(f"its arrays do not fit together: {shapes}")
    if count * codec.bits % 8:
        raise ValueError(f"{count} components of {codec.bits} bits do not fill whole bytes")


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
