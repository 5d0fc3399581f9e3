"""The claim checker: whether evidence supports a sentence, contradicts it, or does neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score, precision_recall_curve
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import AutoModelForSequenceClassification, AutoTokenizer, set_seed

from cluster.errors import InputError
from cluster.models.load_safely import SAFELY
from pipelines.train.adapt import add_adapter, load_with_head, save_model
from pipelines.train.examples.read_claims import LABELS, ClaimPair
from pipelines.train.recipe import ClaimRecipe
from pipelines.train.run_trainer import Measures

BATCH = 32
# Settings for which a card gives thresholds, and the label of each.
THRESHOLDS = {"support.threshold": "SUPPORT", "support.contradiction": "CONTRADICT"}


class ClaimTask:
    """Trains on `pairs` and measures on `held_out`, which has none of their claims."""

    head = "classifier"

    def __init__(
        self,
        base: Path,
        pairs: Sequence[ClaimPair],
        held_out: Sequence[ClaimPair],
        recipe: ClaimRecipe,
        device: str,
        identity: str = "",
    ) -> None:
        if missing := set(range(len(LABELS))) - {pair.label for pair in pairs}:
            names = ", ".join(LABELS[label] for label in sorted(missing))
            raise InputError(f"no pair to train on is {names}: a claim checker needs all three")
        self.device = device
        self.identity = identity
        self._pairs = pairs
        self._held_out = held_out
        self._limit = recipe.max_tokens
        self._weights = _balance(pairs).to(device)
        self.sizes: Sequence[int] = [len(pair.claim) + len(pair.evidence) for pair in pairs]
        self.tokenizer = AutoTokenizer.from_pretrained(base, **SAFELY)
        set_seed(recipe.seed)
        self.model = load_with_head(AutoModelForSequenceClassification, base, LABELS).to(device)
        heads = [name for name, _ in self.model.named_modules() if name.endswith("pooler")]
        self.adapted = add_adapter(self.model, recipe, "SEQ_CLS", ["classifier", *heads])

    def loss(self, places: Sequence[int]) -> Tensor:
        """Return the cross entropy over the pairs at `places`, weighted by class."""
        pairs = [self._pairs[place] for place in places]
        labels = torch.tensor([pair.label for pair in pairs], device=self.device)
        return cross_entropy(self._logits(pairs), labels, self._weights)

    def measure(self) -> Measures:
        """Return accuracy, macro F1 (the mean of the labels' F1) and thresholds on held-out pairs.

        The thresholds are for the settings `support`: the probabilities of support and of
        contradiction with the best F1.
        """
        if not self._held_out:
            return {}
        batches = range(0, len(self._held_out), BATCH)
        logits = [self._logits(self._held_out[first : first + BATCH]) for first in batches]
        shares = torch.cat(logits).softmax(-1).detach().cpu().numpy()
        labels = np.array([pair.label for pair in self._held_out])
        measures = measure_labels(labels.tolist(), shares.argmax(-1).tolist())
        for setting, name in THRESHOLDS.items():
            place = LABELS.index(name)
            measures |= measure_threshold(setting, shares[:, place], labels == place)
        return measures

    def save(self, base: str, folder: Path) -> None:
        """Write the trained model, or only the adapter if one was trained."""
        save_model(self.model, self.tokenizer, self.adapted, base, folder)

    def _logits(self, pairs: Sequence[ClaimPair]) -> Tensor:
        inputs: Any = self.tokenizer(
            [pair.evidence for pair in pairs],
            [pair.claim for pair in pairs],
            # Truncate the evidence; claims are short.
            truncation="only_first",
            max_length=self._limit,
            padding=True,
            return_tensors="pt",
        )
        logits: Tensor = self.model(**inputs.to(self.device)).logits
        return logits.float()


def measure_labels(labels: Sequence[int], guesses: Sequence[int]) -> Measures:
    """Return accuracy, macro F1 and the F1 of each of LABELS."""
    places = list(range(len(LABELS)))
    f1s = f1_score(labels, guesses, labels=places, average=None, zero_division=0)
    measures = {"accuracy": float(accuracy_score(labels, guesses)), "macro F1": float(f1s.mean())}
    return measures | {f"{name} F1": float(f1) for name, f1 in zip(LABELS, f1s, strict=True)}


def measure_threshold(
    setting: str, shares: NDArray[np.float32], there: NDArray[np.bool_]
) -> Measures:
    """Return the threshold among `shares` (n,) with the best F1, with that F1 and its precision.

    `there` (n,) is true for pairs with the label. Of equally good thresholds, the highest is used.
    Return {} if no pair has the label.
    """
    if not there.any():
        return {}
    precision, recall, thresholds = precision_recall_curve(there, shares)
    f1s = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    # The last point of the curve has no threshold.
    best = max(range(len(thresholds)), key=lambda place: (f1s[place], place))
    return {
        setting: float(thresholds[best]),
        f"F1 at {setting}": float(f1s[best]),
        f"precision at {setting}": float(precision[best]),
    }


def _balance(pairs: Sequence[ClaimPair]) -> Tensor:
    """Return weights that give each of LABELS the same total weight, as in macro F1."""
    counts = Counter(pair.label for pair in pairs)
    return torch.tensor([len(pairs) / (len(LABELS) * counts[n]) for n in range(len(LABELS))])
