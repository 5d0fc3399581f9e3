"""The reader: what a passage says to a question, in one pass of a small model over both.

A token classifier over "question [SEP] passage" whose labels answer five questions at once, so
that one forward pass costs what a reranker costs: is a sentence relevant, does it affirm or deny
a yes/no question, does it belong in a summary, and which words name the answer. They are read off
the logits by `cluster.models.readings`. Training (`citeray train reader`) measures with this code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForTokenClassification, AutoTokenizer

from cluster.models.hardware import choose_device, choose_dtype
from cluster.models.kept.keep_models import Conditions
from cluster.models.kept.kept_reader import keep_reader
from cluster.models.load_safely import LOAD_ERRORS, SAFE_WEIGHTS, SAFELY, unloadable
from cluster.models.openvino_runtime import (
    PROBE_PASSAGES,
    PROBE_QUESTIONS,
    Runtime,
    choose_runtime,
    kept_of,
)
from cluster.models.readings import LABELS, BatchReader, PairLogits


class Reader(BatchReader):
    """A reader loaded from a folder of a transformers model with the labels LABELS.

    `max_tokens` are of question and passage together: a longer passage is cut. `threads` are
    torch's, for the whole process. Raises InputError for a folder that does not load, or whose
    model has other labels.
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
        self._tokenizer = tokenizer

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        device: str = "auto",
        dtype: str = "auto",
        max_tokens: int = 224,
        batch_size: int = 8,
        threads: int | None = None,
        runtime: Runtime = "torch",
    ) -> Self:
        """Load a reader from the model in `folder`; `runtime` is as for an Encoder.

        Raises InputError for a folder that does not load, other labels, an unknown `dtype`, a
        missing GPU, or a `runtime` that is not available.
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
        if chosen == "openvino" and (kept := kept_of(reader._model, tokenizer, conditions)):
            keep_reader(conditions, kept, PROBE_QUESTIONS[0], PROBE_PASSAGES, reader)
        return reader

    def _probe(self, passages: Sequence[str]) -> Tensor:
        inputs, logits = self._run(PROBE_QUESTIONS[0], passages)
        seen = inputs["attention_mask"].bool()
        # All tokens of a batch are one row, since single logits may be near 0 and then vary.
        return logits[seen.cpu()].reshape(1, -1)

    def _run(self, question: str, passages: Sequence[str]) -> tuple[Any, Tensor]:
        """The model's inputs for the pairs, and its logits (passages, tokens, labels)."""
        if self._threads:
            # As in cluster.models.encoder: OpenMP keeps this by calling thread.
            torch.set_num_threads(self._threads)
        questions = [question] * len(passages)
        inputs = encode_pairs(self._tokenizer, questions, list(passages), self.max_tokens)
        known = {k: v.to(self._model.device) for k, v in inputs.items() if k != "offset_mapping"}
        with torch.inference_mode():
            return inputs, self._model(**known).logits.float().cpu()

    def score(self, question: str, passages: Sequence[str]) -> Iterator[PairLogits]:
        """See `BatchReader.score`."""
        inputs, logits = self._run(question, passages)
        offsets = inputs["offset_mapping"].numpy()
        for row, found in enumerate(logits.numpy()):
            seen = passage_tokens(inputs, row)
            yield PairLogits(found, offsets[row][seen], seen)


def encode_pairs(tokenizer: Any, questions: list[str], passages: list[str], max_tokens: int) -> Any:
    """The model's inputs for the pairs, with offsets; of long pairs the longer text is cut."""
    return tokenizer(
        questions,
        passages,
        truncation="longest_first",
        max_length=max_tokens,
        padding=True,
        return_offsets_mapping=True,
        return_tensors="pt",
    )


def passage_tokens(inputs: Any, row: int) -> NDArray[np.int64]:
    """The places of the passage's tokens in row `row` of `encode_pairs`' inputs."""
    return np.array([n for n, part in enumerate(inputs.sequence_ids(row)) if part == 1], np.int64)
