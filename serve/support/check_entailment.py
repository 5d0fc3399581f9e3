"""Support by natural language inference, with a passage as premise, a sentence as hypothesis."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from cluster.errors import InputError
from cluster.models.hardware import choose_dtype
from cluster.models.load_safely import LOAD_ERRORS, SAFE_WEIGHTS, SAFELY, unloadable
from serve.support.attribute_sentences import Support

MAX_TOKENS = 512

_ENTAILS = re.compile(r"^(entail|support)", re.IGNORECASE)
_CONTRADICTS = re.compile(r"^(contradict|refut)", re.IGNORECASE)


def nli_labels(id2label: Mapping[int, str]) -> tuple[int, int]:
    """Return the label ids of entailment and contradiction, found by their names.

    Raises InputError, listing the labels, unless each occurs exactly once. Models number them
    differently, so a wrong guess would invert the result.
    """
    found = []
    for name, pattern in (("entailment", _ENTAILS), ("contradiction", _CONTRADICTS)):
        ids = [number for number, label in id2label.items() if pattern.match(label)]
        if len(ids) != 1:
            raise InputError(
                f"NLI model: no single label named {name} among {sorted(id2label.values())};"
                " set id2label in its config.json"
            )
        found.append(ids[0])
    return found[0], found[1]


def _load(model_dir: str, dtype: torch.dtype) -> tuple[Any, Any]:
    """Load the tokenizer and the model of a folder; raises InputError if they do not load."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(model_dir, **SAFELY)
        return tokenizer, AutoModelForSequenceClassification.from_pretrained(
            model_dir, dtype=dtype, **SAFE_WEIGHTS
        )
    except LOAD_ERRORS as error:
        raise unloadable(model_dir, "a claim checker", error) from error


class NliSupport:
    """Support by any Hugging Face sequence-classification NLI model in `model_dir`.

    The score is the probability of entailment, and `against` is that of contradiction.
    """

    def __init__(
        self,
        model_dir: str,
        device: str = "cpu",
        batch_size: int = 32,
        dtype: str = "float32",
    ) -> None:
        self._tokenizer, self._model = _load(model_dir, choose_dtype(dtype, device))
        self._model.to(device).eval()
        self._entails, self._contradicts = nli_labels(self._model.config.id2label)
        # RoBERTa reserves its first two positions, and tokenizers often state no limit.
        positions = getattr(self._model.config, "max_position_embeddings", MAX_TOKENS + 2) - 2
        self._max_tokens = min(MAX_TOKENS, positions, self._tokenizer.model_max_length)
        self._device = device
        self._batch_size = batch_size

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        """Return one Support for each pair, in order; texts over the model's limit are cut."""
        # Batch pairs of similar length to reduce padding.
        order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]) + len(pairs[i][1]))
        supports: dict[int, Support] = {}
        for begin in range(0, len(order), self._batch_size):
            chunk = order[begin : begin + self._batch_size]
            for i, row in zip(chunk, self._probabilities([pairs[i] for i in chunk]), strict=True):
                supports[i] = Support(float(row[self._entails]), float(row[self._contradicts]))
        return [supports[i] for i in range(len(pairs))]

    def _probabilities(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return probabilities of shape (len(pairs), labels), float32; rows sum to 1."""
        inputs = self._tokenizer(
            [premise for premise, _ in pairs],
            [hypothesis for _, hypothesis in pairs],
            padding=True,
            truncation=True,
            max_length=self._max_tokens,
            return_tensors="pt",
        ).to(self._device)
        with torch.inference_mode():
            logits = self._model(**inputs).logits
        probabilities: np.ndarray = logits.float().softmax(-1).cpu().numpy()
        return probabilities
