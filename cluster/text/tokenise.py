"""Tokenise texts as an encoder does, without loading its weights."""

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
    """Return a function that encodes texts as ids, at most `max_tokens` with special tokens.

    The function is cached for the process and reused by later tasks. Raises InputError if the
    folder's tokeniser does not load.
    """
    # Imported here because it takes seconds and not every build needs it.
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
