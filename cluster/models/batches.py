"""Form batches for a model, prepare them while it runs, and move them to its device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# A large batch would otherwise hold texts of all lengths (docs/benchmarks.md).
MOST_PADDING = 1.15
Item = TypeVar("Item")
Result = TypeVar("Result")


def pinned(features: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Return `features` in pinned memory for a GPU, or unchanged for a CPU."""
    if device.type != "cuda":
        return features
    return {k: v.pin_memory() if isinstance(v, Tensor) else v for k, v in features.items()}


def moved(features: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Return `features` on `device`, without waiting for the copy."""
    return {
        k: v.to(device, non_blocking=True) if isinstance(v, Tensor) else v
        for k, v in features.items()
    }


def padded(tokens: Sequence[NDArray[np.int32]], pad: int, left: bool) -> dict[str, Any]:
    """Return token ids as one batch, padded with `pad` on the right, or on the left if `left`."""
    lengths = np.array([len(ids) for ids in tokens])
    places = np.arange(lengths.max())
    seen = (places[::-1] if left else places) < lengths[:, None]
    ids = np.full(seen.shape, pad, np.int64)
    ids[seen] = np.concatenate(tokens)
    mask = torch.from_numpy(seen.astype(np.int64))
    # These are the keys that the preprocessing of sentence-transformers returns.
    return {"input_ids": torch.from_numpy(ids), "attention_mask": mask, "modality": "text"}


def batched_by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Yield the positions in `lengths`, longest first, in batches.

    A padded batch has at most `budget` tokens, and at most MOST_PADDING times the tokens of its
    texts; a longer text gets a batch of its own.
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    begin = 0
    while begin < len(order):
        longest = max(lengths[order[begin]], 1)
        most = min(begin + max(budget // longest, 1), len(order))
        end = begin + 1
        while end < most and MOST_PADDING * lengths[order[end]] >= longest:
            end += 1
        yield order[begin:end]
        begin = end


def batched(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Return `items` in order, in lists of `size`; the last may be shorter."""
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def one_ahead(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield `work(item)` in order; a thread computes the next result while one is in use."""
    if len(items) < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="one-ahead") as pool:
        following = pool.submit(work, items[0])
        for item in items[1:]:
            ready = following.result()
            following = pool.submit(work, item)
            yield ready
        yield following.result()
