"""Run a cached reader on OpenVINO like `cluster.models.reader`, but without torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cluster.models.model_cache.cache_entries import (
    CacheEntry,
    Conditions,
    agree,
    find_entry,
    write_record,
)
from cluster.models.model_cache.converted_encoder import tokenizer_of
from cluster.models.readings import STRIDE, BatchReader, PairLogits


class CachedReader(BatchReader):
    """The reader in `conditions.folder`, loaded from the cache record `kept`.

    `max_tokens` is the size of a window.
    """

    def __init__(
        self, conditions: Conditions, kept: CacheEntry, *, max_tokens: int, batch_size: int
    ) -> None:
        super().__init__(batch_size)
        self._model = kept.load(conditions.threads)
        self._max_tokens = max_tokens
        self._pad_id = int(kept.facts["pad"])
        self._tokenizer = tokenizer_of(conditions.folder, kept)
        # A tokeniser that truncates only second sequences cannot encode a single question.
        self._whole = tokenizer_of(conditions.folder, kept)
        self._whole.no_truncation()
        self._tokenizer.enable_truncation(
            max_tokens,
            stride=min(STRIDE, max_tokens // 4),
            strategy="only_second",
            direction="left",
        )

    def score(self, question: str, texts: Sequence[str]) -> Iterator[PairLogits]:
        """Yield the logits of each window of each text, a text's last window first."""
        question = self._cut(question)
        windows = [
            (row, window)
            for row, first in enumerate(
                self._tokenizer.encode_batch([(question, text) for text in texts])
            )
            for window in (first, *first.overflowing)
        ]
        # Run windows in batches, because one long text may have hundreds.
        for at in range(0, len(windows), self._batch_size):
            yield from self._run(windows[at : at + self._batch_size])

    def _run(self, windows: Sequence[tuple[int, Any]]) -> Iterator[PairLogits]:
        width = max(len(window.ids) for _, window in windows)
        for _, window in windows:
            window.pad(width, pad_id=self._pad_id)
        given = {
            "input_ids": [each.ids for _, each in windows],
            "attention_mask": [each.attention_mask for _, each in windows],
            "token_type_ids": [each.type_ids for _, each in windows],
        }
        taken = {name: np.array(given[name], np.int64) for name in self._model.names}
        logits = self._model.run(taken)
        for (row, window), found in zip(windows, logits, strict=True):
            kept = np.flatnonzero(window.attention_mask)
            seen = np.flatnonzero([part == 1 for part in window.sequence_ids])
            offsets = np.array(window.offsets, np.int64)[seen]
            yield PairLogits(row, found[kept], offsets, np.searchsorted(kept, seen))

    def _cut(self, question: str) -> str:
        encoding = self._whole.encode(question, add_special_tokens=False)
        most = self._max_tokens // 2
        return question if len(encoding) <= most else question[: encoding.offsets[most - 1][1]]


def find_reader(conditions: Conditions, *, max_tokens: int, batch_size: int) -> CachedReader | None:
    """Return the cached reader for these conditions, or None if there is none."""
    kept = find_entry(conditions)
    if kept is None:
        return None
    return CachedReader(conditions, kept, max_tokens=max_tokens, batch_size=batch_size)


def cache_reader(
    conditions: Conditions, kept: CacheEntry, question: str, passages: Sequence[str], reader: Any
) -> None:
    """Write the record `kept` if a CachedReader gives the same logits for `passages`."""
    other = CachedReader(conditions, kept, max_tokens=reader.max_tokens, batch_size=len(passages))
    pairs = zip(reader.score(question, passages), other.score(question, passages), strict=True)
    if all(_agree(*pair) for pair in pairs):
        write_record(conditions, kept)


def _agree(wanted: PairLogits, found: PairLogits) -> bool:
    same = np.array_equal(wanted.seen, found.seen) and np.array_equal(wanted.offsets, found.offsets)
    # Compare all tokens as one row, since single logits near 0 may vary.
    rows = (each.logits[each.seen].reshape(1, -1) for each in (wanted, found))
    return same and agree(*rows)
