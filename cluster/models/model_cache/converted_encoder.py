"""Run a cached encoder on OpenVINO like `cluster.models.encoder`, but without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cluster.index.tokens.codec import Codes, TokenCodec
from cluster.models.embedded import NO_CODES, Embedded, QuestionVectors
from cluster.models.model_cache.cache_entries import (
    CacheEntry,
    Conditions,
    agree,
    find_entry,
    write_record,
)
from cluster.settings.stages.encoder import EncoderSettings

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
# Quantises unit token vectors (n, width) to codes (n, bytes).
Code = Callable[[Vectors], Codes]


class ConvertedEncoder:
    """The encoder in `conditions.folder`, loaded from the cache record `kept`; mean pooling only.

    Texts are truncated to `max_tokens`, `batch_size` is in texts, and `query_prefix` is added
    before a question.
    """

    runtime = "openvino"

    def __init__(
        self,
        conditions: Conditions,
        kept: CacheEntry,
        *,
        max_tokens: int,
        batch_size: int,
        query_prefix: str = "",
    ) -> None:
        self.name = conditions.folder.name
        self.dtype = kept.dtype
        self.batch_size = batch_size
        self.query_prefix = query_prefix
        self.dimensions = int(kept.facts["dimensions"])
        self._edges = np.asarray(kept.facts["edges"], np.int64)
        self._model = kept.load(conditions.threads)
        self._tokenizer = tokenizer_of(conditions.folder, kept)
        self._tokenizer.enable_truncation(max_tokens)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of shape (n, dimensions), float32, in the order of `texts`."""
        return self.embed(texts, None).vectors

    def compress_by(self, codec: TokenCodec, pool: int) -> Code:
        """Return the function that quantises by `codec`. Raises ValueError if `pool` is not 1."""
        if pool != 1:
            raise ValueError("a cached encoder does not pool tokens: load the encoder itself")
        return codec.code

    def embed(self, texts: Sequence[str], compress: Code | None) -> Embedded:
        """Return the vectors of `encode` and the token codes, computed in one forward pass."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        codes = [NO_CODES] * len(texts)
        for places, ids, seen, states in self._run(texts, self.batch_size):
            vectors[places] = _means(states, seen)
            if compress is not None:
                inner = ~np.isin(ids, self._edges)
                coded = compress(_unit(states[inner]))
                parts = np.split(coded, np.cumsum(inner.sum(1))[:-1])
                for position, part in zip(places, parts, strict=True):
                    codes[position] = part
        return Embedded(vectors, codes)

    def encode_queries(self, texts: Sequence[str]) -> list[QuestionVectors]:
        """Return the vectors of questions, without the token vectors of the prefix."""
        skipped = len(self._tokenizer.encode(self.query_prefix, add_special_tokens=False).ids)
        found: dict[int, QuestionVectors] = {}
        asked = [self.query_prefix + text for text in texts]
        for places, ids, seen, states in self._run(asked, self.batch_size):
            rows = zip(places, _means(states, seen), self._own(ids, states), strict=True)
            for position, vector, own in rows:
                found[position] = QuestionVectors(vector, own[skipped:].astype(np.float16))
        return [found[position] for position in range(len(texts))]

    def token_vectors(self, texts: Sequence[str], batch_size: int | None = None) -> list[Vectors]:
        """Return each text's normalised last hidden states, of shape (tokens, width), float32."""
        found: dict[int, Vectors] = {}
        for places, ids, _, states in self._run(texts, batch_size or self.batch_size):
            found.update(zip(places, self._own(ids, states), strict=True))
        return [found[position] for position in range(len(texts))]

    def _run(
        self, texts: Sequence[str], size: int
    ) -> Iterator[tuple[list[int], Ids, Ids, Vectors]]:
        """Yield batches of similar length: positions, token ids, attention mask, hidden states."""
        if not texts:
            return
        encodings = self._tokenizer.encode_batch(list(texts))
        every = np.array([encoding.ids for encoding in encodings], np.int64)
        tokens = np.array([encoding.attention_mask for encoding in encodings], np.int64)
        order = np.argsort(-tokens.sum(axis=1), kind="stable")
        for first in range(0, len(order), size):
            places = order[first : first + size]
            # Drop the padding to the length of a longer batch.
            used = tokens[places].any(axis=0)
            ids, seen = (np.ascontiguousarray(of[places][:, used]) for of in (every, tokens))
            states = self._model.run({"input_ids": ids, "attention_mask": seen})
            yield places.tolist(), ids, seen, states

    def _own(self, ids: Ids, states: Vectors) -> Iterator[Vectors]:
        """Yield the normalised token vectors of each text, without special tokens and padding."""
        for row, inner in zip(states, ~np.isin(ids, self._edges), strict=True):
            yield _unit(row[inner])


def find_encoder(settings: EncoderSettings, folder: Path) -> ConvertedEncoder | None:
    """Return the cached encoder for `folder` and these settings, or None if there is none."""
    conditions = Conditions.of(settings, folder)
    kept = find_entry(conditions)
    if kept is None:
        return None
    return ConvertedEncoder(
        conditions,
        kept,
        max_tokens=settings.max_tokens,
        batch_size=settings.batch_size,
        query_prefix=settings.query_prefix,
    )


def cache_encoder(
    conditions: Conditions, kept: CacheEntry, texts: Sequence[str], encoder: Any
) -> None:
    """Write the record `kept` if a ConvertedEncoder gives the same vectors for `texts`."""
    other = ConvertedEncoder(conditions, kept, max_tokens=encoder.max_tokens, batch_size=len(texts))
    tokens = (np.concatenate(each.token_vectors(texts)) for each in (encoder, other))
    if agree(encoder.encode(texts), other.encode(texts)) and agree(*tokens):
        write_record(conditions, kept)


def tokenizer_of(folder: Path, kept: CacheEntry) -> Tokenizer:
    """Return the tokeniser in a model's folder, with the padding that the model expects."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    pad, side = kept.facts["pad"], kept.facts["padding_side"]
    token = tokenizer.id_to_token(pad)
    tokenizer.enable_padding(direction=side, pad_id=pad, pad_token=token)
    return tokenizer


def _means(states: Vectors, seen: Ids) -> Vectors:
    weights = seen.astype(np.float32)
    sums = np.einsum("ntd,nt->nd", states, weights)
    return _unit(sums / np.maximum(weights.sum(1, keepdims=True), 1e-9))


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, 1e-12)
    return unit
