"""The reader without torch: what `cluster.models.reader` reads of passages, on OpenVINO."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cluster.models.kept.keep_models import Conditions, Kept, find_kept, is_same, write_kept
from cluster.models.kept.kept_encoder import tokenizer_of
from cluster.models.readings import BatchReader, PairLogits


class KeptReader(BatchReader):
    """The reader of `conditions.folder` as `kept`; `max_tokens` are of both texts together."""

    def __init__(
        self, conditions: Conditions, kept: Kept, *, max_tokens: int, batch_size: int
    ) -> None:
        super().__init__(batch_size)
        self._model = kept.load(conditions.threads)
        self._tokenizer = tokenizer_of(conditions.folder, kept)
        self._tokenizer.enable_truncation(max_tokens, strategy="longest_first")

    def score(self, question: str, passages: Sequence[str]) -> Iterator[PairLogits]:
        """See `BatchReader.score`."""
        encodings = self._tokenizer.encode_batch([(question, passage) for passage in passages])
        given = {
            "input_ids": [each.ids for each in encodings],
            "attention_mask": [each.attention_mask for each in encodings],
            "token_type_ids": [each.type_ids for each in encodings],
        }
        taken = {name: np.array(given[name], np.int64) for name in self._model.names}
        logits = self._model.run(taken)
        for encoding, found in zip(encodings, logits, strict=True):
            seen = np.flatnonzero([part == 1 for part in encoding.sequence_ids])
            yield PairLogits(found, np.array(encoding.offsets, np.int64)[seen], seen)


def find_reader(conditions: Conditions, *, max_tokens: int, batch_size: int) -> KeptReader | None:
    """The reader that is kept for these conditions, if any."""
    kept = find_kept(conditions)
    if kept is None:
        return None
    return KeptReader(conditions, kept, max_tokens=max_tokens, batch_size=batch_size)


def keep_reader(
    conditions: Conditions, kept: Kept, question: str, passages: Sequence[str], reader: Any
) -> None:
    """Keep how `reader` runs, where without torch it gives the same logits of `passages`."""
    other = KeptReader(conditions, kept, max_tokens=reader.max_tokens, batch_size=len(passages))
    pairs = zip(reader.score(question, passages), other.score(question, passages), strict=True)
    if all(_agree(*pair) for pair in pairs):
        write_kept(conditions, kept)


def _agree(wanted: PairLogits, found: PairLogits) -> bool:
    same = np.array_equal(wanted.seen, found.seen) and np.array_equal(wanted.offsets, found.offsets)
    # All tokens are one row, since single logits may be near 0 and then vary.
    rows = (each.logits[each.seen].reshape(1, -1) for each in (wanted, found))
    return same and is_same(*rows)
