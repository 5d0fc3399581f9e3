"""Texts to the token ids that an encoder sees, without the encoder: no weights, no GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster.models.load_safely import LOAD_ERRORS, SAFELY, unloadable

Tokens = NDArray[np.int32]
Tokenise = Callable[[Sequence[str]], list[Tokens]]


@cache
def make_tokeniser(model_dir: Path, max_tokens: int) -> Tokenise:
    """What gives each text its ids, special tokens included, at most `max_tokens` of them.

    Kept for the process, so that a task finds the one of the task before. Raises InputError
    for a folder whose tokeniser does not load.
    """
    # Here, not above: it takes seconds to import, and not every build needs it.
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(model_dir), **SAFELY)
    except LOAD_ERRORS as error:
        raise unloadable(model_dir, "a tokeniser", error) from error

    def tokenise(texts: Sequence[str]) -> list[Tokens]:
        if not texts:
            return []
        found = tokenizer(list(texts), truncation=True, max_length=max_tokens, verbose=False)
        return [np.asarray(ids, np.int32) for ids in found["input_ids"]]

    return tokenise
