"""Training task of the recogniser, which tags tokens as outside, begin or inside of an entity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoModelForTokenClassification, AutoTokenizer, set_seed

from cluster.errors import InputError
from cluster.models.load_safely import SAFELY
from cluster.models.tag_entities import EntityTagger
from pipelines.train.adapt import add_adapter, load_with_head, save_model
from pipelines.train.examples.tagged_texts import (
    Span,
    TaggedText,
    allowed_labels,
    labels_of,
    windows_of,
)
from pipelines.train.losses import allowed_labels_loss
from pipelines.train.recipe import Recipe
from pipelines.train.run_trainer import Measures

# Texts are cut at these shares of the recipe's tokens in turn, as questions are short.
SHARES = (0.25, 0.5, 1.0)


class TagTask:
    """Trains on the entities of `texts` and measures on `held_out`."""

    head = "classifier"

    def __init__(
        self,
        base: Path,
        texts: Sequence[TaggedText],
        held_out: Sequence[TaggedText],
        recipe: Recipe,
        device: str,
        identity: str = "",
    ) -> None:
        labels = labels_of({kind for text in texts for kind in text.marked})
        if len(labels) == 1:
            raise InputError("no text has an entity: there is nothing to train a recogniser on")
        self.device = device
        self.identity = identity
        self._held_out = held_out
        self._limit = recipe.max_tokens
        self.tokenizer = AutoTokenizer.from_pretrained(base, **SAFELY)
        set_seed(recipe.seed)
        self.model = load_with_head(AutoModelForTokenClassification, base, labels).to(device)
        # The tagger reads this limit: its windows must not be longer than those in training.
        self.model.config.window_tokens = recipe.max_tokens
        self.adapted = add_adapter(self.model, recipe, "TOKEN_CLS")
        limits = [max(8, round(share * recipe.max_tokens)) for share in SHARES]
        self._windows = windows_of(texts, self.tokenizer, limits)
        self._labels = labels
        self.sizes: Sequence[int] = [len(window.text) for window in self._windows]

    def loss(self, places: Sequence[int]) -> Tensor:
        """Return the loss over the allowed labels of the tokens in the windows at `places`."""
        windows = [self._windows[position] for position in places]
        inputs = self.tokenizer(
            [window.text for window in windows],
            truncation=True,
            max_length=self._limit,
            padding=True,
            return_offsets_mapping=True,
            return_tensors="pt",
        )
        offsets = inputs.pop("offset_mapping").tolist()
        allowed = torch.tensor(
            [
                allowed_labels(w, spans, self._labels)
                for w, spans in zip(windows, offsets, strict=True)
            ]
        )
        # Special tokens and padding have an empty span.
        real = torch.tensor([[begin < end for begin, end in spans] for spans in offsets])
        logits = self.model(**inputs.to(self.device)).logits
        return allowed_labels_loss(logits[real.to(self.device)], allowed[real].to(self.device))

    def measure(self) -> Measures:
        """Return the scores of the tagger on the held-out texts; {} if there are none."""
        if not self._held_out:
            return {}
        return measure_tagger(EntityTagger(self.model, self.tokenizer), self._held_out)

    def save(self, base: str, folder: Path) -> None:
        """Write the trained model, or only the adapter if one was trained."""
        save_model(self.model, self.tokenizer, self.adapted, base, folder)


def measure_tagger(tagger: EntityTagger, texts: Sequence[TaggedText]) -> Measures:
    """Return precision, recall and F1 of exact spans with their type, over `texts` and by type.

    Predictions of types that the file of a text does not mark are ignored.
    """
    found = tagger.tag([text.text for text in texts])
    right: Counter[str] = Counter()
    named: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for text, entities in zip(texts, found, strict=True):
        gold = set(text.entities)
        guessed = {(e.begin, e.end, e.kind) for e in entities if e.kind in text.marked}
        right += _count(gold & guessed)
        named += _count(guessed)
        there += _count(gold)
    measures = _scores("", right.total(), named.total(), there.total())
    for kind in sorted(there):
        measures |= _scores(f"{kind} ", right[kind], named[kind], there[kind])
    return measures


def _count(spans: Iterable[Span]) -> Counter[str]:
    return Counter(kind for _, _, kind in spans)


def _scores(prefix: str, right: int, named: int, there: int) -> Measures:
    precision, recall = right / max(named, 1), right / max(there, 1)
    f1 = 2 * right / max(named + there, 1)
    return {f"{prefix}precision": precision, f"{prefix}recall": recall, f"{prefix}F1": f1}
