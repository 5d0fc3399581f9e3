"""Training task of the cross-encoder, which scores how relevant a document is to a question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from transformers import AutoModelForSequenceClassification, AutoTokenizer, set_seed

from cluster.errors import InputError
from cluster.models.adapters import quiet_loading
from cluster.models.load_safely import LOAD_ERRORS, SAFE_WEIGHTS, SAFELY, unloadable
from pipelines.train.adapt import add_adapter, save_model
from pipelines.train.examples.relevance_pairs import RelevancePair
from pipelines.train.recipe import CrossEncoderRecipe
from pipelines.train.run_trainer import Measures
from pipelines.train.tasks.retrieval_task import MinedQuestion, average_precision

BATCH = 32


class PairModel:
    """A transformers model that returns one logit per pair of texts.

    A model without a head gets a randomly initialised one, unless `trained` requires a trained
    model. Raises InputError if the folder cannot be loaded as such.
    """

    def __init__(self, folder: Path, device: str, max_tokens: int, *, trained: bool) -> None:
        self.device = device
        try:
            with quiet_loading():
                self.tokenizer = AutoTokenizer.from_pretrained(folder, **SAFELY)
                self.model, loaded = AutoModelForSequenceClassification.from_pretrained(
                    folder,
                    **SAFE_WEIGHTS,
                    dtype=torch.float32,
                    num_labels=1,
                    output_loading_info=True,
                )
        except LOAD_ERRORS as error:
            raise unloadable(folder, "a model with one score a pair", error) from error
        if trained and loaded["missing_keys"]:
            raise InputError(
                f"{folder}: not a trained cross-encoder (it has no head of its own); train one "
                "with `citeray train cross-encoder QUESTIONS`"
            )
        self.model.to(device)
        positions = getattr(self.model.config, "max_position_embeddings", max_tokens)
        self._limit = min(max_tokens, self.tokenizer.model_max_length, positions)

    def logits(self, pairs: Sequence[tuple[str, str]]) -> Tensor:
        """Return one logit per (question, document), with gradients."""
        questions, texts = zip(*pairs, strict=True)
        inputs: Any = self.tokenizer(
            list(questions),
            list(texts),
            # As in the service: truncate the longer text, which is the document.
            truncation="longest_first",
            max_length=self._limit,
            padding=True,
            return_tensors="pt",
        )
        logits: Tensor = self.model(**inputs.to(self.device)).logits
        return logits.float().squeeze(-1)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the probability that each document is relevant, in the order of `pairs`."""
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][1]))
        scores: dict[int, float] = {}
        self.model.eval()
        with torch.inference_mode():
            for first in range(0, len(order), BATCH):
                places = order[first : first + BATCH]
                found = self.logits([pairs[place] for place in places]).sigmoid()
                scores.update(zip(places, found.tolist(), strict=True))
        return [scores[place] for place in range(len(pairs))]


class CrossEncoderTask:
    """Trains on `pairs` and measures on `held_out`, whose candidates are rows of `texts`."""

    head = "classifier"

    def __init__(
        self,
        base: Path,
        pairs: Sequence[RelevancePair],
        texts: Sequence[str],
        held_out: Sequence[MinedQuestion],
        recipe: CrossEncoderRecipe,
        device: str,
        identity: str = "",
        *,
        trained: bool = False,
    ) -> None:
        self.device = device
        self.identity = identity
        self._base = base
        self._pairs = pairs
        self._texts = texts
        self._held_out = held_out
        self.sizes: Sequence[int] = [len(pair.question) + len(pair.text) for pair in pairs]
        set_seed(recipe.seed)
        self._scorer = PairModel(base, device, recipe.max_tokens, trained=trained)
        self.model = self._scorer.model
        add_adapter(self.model, recipe, "SEQ_CLS")

    def loss(self, places: Sequence[int]) -> Tensor:
        """Return the binary cross entropy of the pairs at `places`."""
        pairs = [self._pairs[place] for place in places]
        labels = torch.tensor([float(pair.relevant) for pair in pairs], device=self.device)
        logits = self._scorer.logits([(pair.question, pair.text) for pair in pairs])
        return binary_cross_entropy_with_logits(logits, labels)

    def measure(self) -> Measures:
        """Return MAP@10 of the held-out questions: of their candidates by BM25, and reranked."""
        if not self._held_out:
            return {}
        golds = [one.question.gold for one in self._held_out]
        found = [one.candidates for one in self._held_out]
        ranked = [self._ranked(one) for one in self._held_out]
        return {
            "BM25 MAP@10": float(np.mean(list(map(average_precision, found, golds)))),
            "reranked MAP@10": float(np.mean(list(map(average_precision, ranked, golds)))),
        }

    def save(self, base: str, folder: Path) -> None:
        """Write the trained model, or only the adapter if one was trained."""
        # Reloaded, because the one in use would be saved with the last batch's padding and length.
        tokenizer = AutoTokenizer.from_pretrained(self._base, **SAFELY)
        save_model(self.model, tokenizer, None, base, folder)

    def _ranked(self, one: MinedQuestion) -> list[int]:
        pairs = [(one.question.text, self._texts[row]) for row in one.candidates]
        scores = self._scorer.scores(pairs)
        best = sorted(zip(scores, one.candidates, strict=True), key=lambda pair: -pair[0])
        return [row for _, row in best]
