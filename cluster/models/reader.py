"""Reader: a cross-encoder that predicts whether and how a text answers a question.

It is a token classifier over "question [SEP] text" that predicts in one pass whether the text is
relevant, whether it says yes or no to a yes/no question, which sentences answer, and which words
name the answer. `cluster.models.readings` computes these from the logits. Texts are read whole, a
long one in several overlapping windows. Training (`citeray train reader`) measures quality with
this code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForTokenClassification, AutoTokenizer

from cluster.errors import InputError
from cluster.models.hardware import choose_device, choose_dtype
from cluster.models.load_safely import LOAD_ERRORS, SAFE_WEIGHTS, SAFELY, unloadable
from cluster.models.model_cache.cache_entries import Conditions
from cluster.models.model_cache.converted_reader import cache_reader
from cluster.models.openvino_runtime import (
    PROBE_PASSAGES,
    PROBE_QUESTIONS,
    Runtime,
    cache_record,
    choose_runtime,
)
from cluster.models.readings import LABELS, STRIDE, BatchReader, PairLogits


class Reader(BatchReader):
    """Reader loaded from a folder of a transformers model with the labels LABELS.

    `max_tokens` is the size of a window, question and text together. `threads` is the number
    of torch's threads, for the whole process. Raises InputError for a folder that does not load,
    or whose model has other labels.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_tokens: int,
        batch_size: int,
        threads: int | None = None,
    ) -> None:
        super().__init__(batch_size)
        self.max_tokens = max_tokens
        self._model = model.eval()
        self._threads = threads
        # Truncate on the left, because the first window is the end of the text.
        tokenizer.truncation_side = "left"
        self._tokenizer = tokenizer
        # Truncation and padding are state of the tokeniser, so calls from threads are serialised.
        self._tokenizing = Lock()

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        device: str = "auto",
        dtype: str = "auto",
        max_tokens: int = 384,
        batch_size: int = 8,
        threads: int | None = None,
        runtime: Runtime = "torch",
    ) -> Self:
        """Load a reader from the model in `folder`; `runtime` is as in `Encoder`.

        Raises InputError for a folder that does not load, other labels, an unknown `dtype`, a
        missing GPU, a `runtime` that is not available, or windows that the model cannot read.
        """
        conditions = Conditions(folder, device, dtype, runtime, threads)
        device = choose_device(device)
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, **SAFELY)
            model = AutoModelForTokenClassification.from_pretrained(
                folder, dtype=choose_dtype(dtype, device), **SAFE_WEIGHTS
            )
        except LOAD_ERRORS as error:
            raise unloadable(folder, "a reader", error) from error
        if tuple(model.config.id2label.values()) != LABELS:
            raise unloadable(
                folder, "a reader", ValueError(f"its labels are not {', '.join(LABELS)}")
            )
        _check_window(tokenizer, max_tokens, folder)
        reader = cls(
            model.to(device),
            tokenizer,
            max_tokens=max_tokens,
            batch_size=batch_size,
            threads=threads,
        )
        chosen = choose_runtime(
            reader._model,
            [partial(reader._probe, texts) for texts in (PROBE_QUESTIONS, PROBE_PASSAGES)],
            runtime=runtime,
            device=device,
            dtype=model.dtype,
            threads=threads,
            name=folder.name,
        )
        if chosen == "openvino" and (kept := cache_record(reader._model, tokenizer, conditions)):
            cache_reader(conditions, kept, PROBE_QUESTIONS[0], PROBE_PASSAGES, reader)
        return reader

    def _probe(self, texts: Sequence[str]) -> Tensor:
        inputs, logits = self._run(PROBE_QUESTIONS[0], texts)
        seen = inputs["attention_mask"].bool()
        # Compare all tokens of a batch as one row, since single logits near 0 may vary.
        return logits[seen.cpu()].reshape(1, -1)

    def _run(self, question: str, texts: Sequence[str]) -> tuple[Any, Tensor]:
        """Return the model's inputs for all windows, and its logits (windows, tokens, labels)."""
        if self._threads:
            # OpenMP keeps this setting for each calling thread, as cluster.models.encoder explains.
            torch.set_num_threads(self._threads)
        with self._tokenizing:
            inputs = encode_pairs(self._tokenizer, question, texts, self.max_tokens)
        known = {k: inputs[k].to(self._model.device) for k in self._tokenizer.model_input_names}
        # Run windows in batches, because one long text may have hundreds.
        firsts = range(0, len(inputs["input_ids"]), self._batch_size)
        with torch.inference_mode():
            parts = [
                self._model(**{k: v[at : at + self._batch_size] for k, v in known.items()}).logits
                for at in firsts
            ]
        return inputs, torch.cat(parts).float().cpu()

    def score(self, question: str, texts: Sequence[str]) -> Iterator[PairLogits]:
        """Yield the logits of each window of each text, a text's last window first."""
        inputs, logits = self._run(question, texts)
        offsets = inputs["offset_mapping"].numpy()
        rows = inputs["overflow_to_sample_mapping"].tolist()
        mask = inputs["attention_mask"].numpy().astype(bool)
        for window, (row, found) in enumerate(zip(rows, logits.numpy(), strict=True)):
            seen = text_tokens(inputs, window)
            kept = np.flatnonzero(mask[window])
            places = np.searchsorted(kept, seen)
            yield PairLogits(row, found[kept], offsets[window][seen], places)


def _check_window(tokenizer: Any, max_tokens: int, folder: Path) -> None:
    if max_tokens > tokenizer.model_max_length:
        raise InputError(
            f"reader.max_tokens is {max_tokens}, but {folder.name} reads at most "
            f"{tokenizer.model_max_length} tokens at once: set it to that or less"
        )


def encode_pairs(tokenizer: Any, question: str, texts: Sequence[str], max_tokens: int) -> Any:
    """Return the model's inputs for the question and each text, with offsets.

    A long text is split into windows that overlap by STRIDE tokens, the last one first. The last
    window has the full length, since conclusions are at the end. A long question is cut so that
    half of the tokens are left for the text.
    """
    question = cut_question(tokenizer, question, max_tokens)
    return tokenizer(
        [question] * len(texts),
        list(texts),
        truncation="only_second",
        max_length=max_tokens,
        stride=min(STRIDE, max_tokens // 4),
        padding=True,
        return_offsets_mapping=True,
        return_overflowing_tokens=True,
        return_tensors="pt",
    )


def cut_question(tokenizer: Any, question: str, max_tokens: int) -> str:
    """Return the question, cut to at most half of `max_tokens`."""
    found = tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)
    offsets = found["offset_mapping"]
    most = max_tokens // 2
    return question if len(offsets) <= most else question[: offsets[most - 1][1]]


def text_tokens(inputs: Any, window: int) -> NDArray[np.int64]:
    """Return the positions of the text's tokens in a window of `encode_pairs`' inputs."""
    parts = inputs.sequence_ids(window)
    return np.array([n for n, part in enumerate(parts) if part == 1], np.int64)
