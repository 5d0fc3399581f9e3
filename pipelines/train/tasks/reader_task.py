"""The reader: relevance, stance, names and summary sentences, learned together in one model."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import AutoModelForTokenClassification

from cluster.models.reader import Reader, encode_pairs, passage_tokens
from cluster.models.readings import (
    LABELS,
    RELEVANT,
    SPAN_LABELS,
    STANCE_LABELS,
    STANCE_WEIGHTS,
    SUMMARY,
    YES,
)
from pipelines.train.adapt import add_adapter, load_with_head, save_model
from pipelines.train.examples.mark_names import Marked, find_names
from pipelines.train.examples.reader_examples import AnsweredQuestion, Part, ReaderExample
from pipelines.train.loop import Measures
from pipelines.train.recipe import ReaderRecipe

BATCH = 16
# What is not known of a token or a pair.
UNKNOWN = -100
# Most words name nothing.
_SPAN_WEIGHTS = (0.3, 1.0, 1.0)


class _Labels(NamedTuple):
    """Of a batch: `spans` (pairs, tokens) of O, B, I or UNKNOWN; `part` (pairs, tokens) the
    number of the part in the batch that a token is in, or UNKNOWN; `parts` those parts and `rows`
    their pairs.
    """

    spans: Tensor
    part: Tensor
    parts: Sequence[Part]
    rows: Sequence[int]


class ReaderTask:
    """Learns from `examples`, measures on the snippets of the questions `held_out`."""

    head = "classifier"

    def __init__(
        self,
        base: Path,
        examples: Sequence[ReaderExample],
        held_out: Sequence[AnsweredQuestion],
        recipe: ReaderRecipe,
        device: str,
        identity: str = "",
    ) -> None:
        self.device = device
        self.identity = identity
        self._examples = examples
        self._held_out = held_out
        self._recipe = recipe
        self.sizes: Sequence[int] = [len(e.question) + len(e.passage) for e in examples]
        self.tokenizer, self.model = load_with_head(
            AutoModelForTokenClassification, base, LABELS, recipe, device
        )
        self.adapted = add_adapter(self.model, recipe, "TOKEN_CLS")

    def loss(self, places: Sequence[int]) -> Tensor:
        """Sum of four losses of the examples at `places`: relevance, summary, stance and names."""
        examples = [self._examples[place] for place in places]
        recipe = self._recipe
        inputs = encode_pairs(
            self.tokenizer,
            [e.question for e in examples],
            [e.passage for e in examples],
            recipe.max_tokens,
        )
        offsets = inputs.pop("offset_mapping").numpy()
        seen = [passage_tokens(inputs, row) for row in range(len(examples))]
        labels = _label(examples, offsets, seen)
        logits = self.model(**inputs.to(self.device)).logits.float()
        parts, whole = part_logits(logits, labels.part, labels.rows)
        known = [labels.parts[number] for number in parts.tolist()]
        terms = [
            self._shares(known, whole[:, RELEVANT], [p.relevant for p in known]),
            self._shares(known, whole[:, SUMMARY], [p.share for p in known]),
            recipe.stance_weight * self._stance(known, whole) / len(examples),
            recipe.names_weight * self._names(labels, logits),
        ]
        return torch.stack(terms).sum()

    def _shares(
        self, parts: Sequence[Part], logits: Tensor, wanted: Sequence[float | None]
    ) -> Tensor:
        known = [n for n, share in enumerate(wanted) if share is not None]
        if not known:
            return logits.sum() * 0
        shares = self._tensor([float(wanted[n] or 0) for n in known])
        weights = self._tensor([parts[n].weight for n in known])
        return binary_cross_entropy_with_logits(logits[known], shares, weights)

    def _stance(self, parts: Sequence[Part], logits: Tensor) -> Tensor:
        """Summed, not the mean: a batch with few yes/no questions must not count as one with
        many.
        """
        known = [n for n, part in enumerate(parts) if part.stance is not None]
        if not known:
            return logits.sum() * 0
        wanted = torch.tensor([(parts[n].stance or 0) - YES for n in known], device=self.device)
        losses = cross_entropy(
            logits[known][:, STANCE_LABELS],
            wanted,
            self._tensor(STANCE_WEIGHTS),
            reduction="none",
        )
        return (losses * self._tensor([parts[n].weight for n in known])).sum()

    def _names(self, labels: _Labels, logits: Tensor) -> Tensor:
        spans = labels.spans.to(self.device)
        if not (spans != UNKNOWN).any():
            return logits.sum() * 0
        return cross_entropy(
            logits[..., SPAN_LABELS].flatten(0, 1),
            spans.flatten(),
            self._tensor(_SPAN_WEIGHTS),
            ignore_index=UNKNOWN,
        )

    def _tensor(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(values, device=self.device)

    def measure(self) -> Measures:
        """Over the gold snippets of the questions held out.

        Macro F1 of yes/no (each question by the sum over its snippets), and of names the share of
        factoid questions whose best name is right, and F1 of their words.
        """
        if not self._held_out:
            return {}
        reader = Reader(
            self.model,
            self.tokenizer,
            max_tokens=self._recipe.max_tokens,
            batch_size=BATCH,
        )
        return measure_reader(reader, self._held_out)

    def save(self, base: str, folder: Path) -> None:
        """See `Trainable.save`."""
        save_model(self.model, self.tokenizer, self.adapted, base, folder)


def part_logits(logits: Tensor, part: Tensor, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The numbers of the parts that have tokens, and their logits (parts, labels).

    `part` and `rows` are those of `_Labels`; the logits are as cluster.models.reader has them.
    """
    pairs, columns = (part != UNKNOWN).nonzero(as_tuple=True)
    number = part[pairs, columns]
    tokens = logits[pairs.to(logits.device), columns.to(logits.device)]
    sums = tokens.new_zeros(len(rows), logits.shape[-1])
    sums = sums.index_add(0, number.to(logits.device), tokens)
    counts = torch.bincount(number, minlength=len(rows))
    there = counts.nonzero().flatten()
    first = logits[torch.tensor(rows, dtype=torch.long)[there].to(logits.device), 0]
    held = counts[there].to(logits.device)[:, None]
    return there, first + sums[there.to(logits.device)] / held


def draw_examples(
    learned: Iterator[ReaderExample], made: Iterator[ReaderExample], seed: int
) -> list[ReaderExample]:
    """All of both in one order that `seed` decides."""
    examples = [*learned, *made]
    random.Random(seed).shuffle(examples)
    return examples


def _label(
    examples: Sequence[ReaderExample], offsets: np.ndarray, seen: Sequence[np.ndarray]
) -> _Labels:
    spans = torch.full(offsets.shape[:2], UNKNOWN)
    part = torch.full(offsets.shape[:2], UNKNOWN)
    parts: list[Part] = []
    rows: list[int] = []
    for row, (example, places) in enumerate(zip(examples, seen, strict=True)):
        for place in places.tolist():
            begin, end = offsets[row, place].tolist()
            if example.names is not None:
                spans[row, place] = _span_label(example.names, begin, end)
            at = next((n for n, p in enumerate(example.parts) if p.begin <= begin < p.end), -1)
            if at >= 0:
                part[row, place] = len(parts) + at
        parts += example.parts
        rows += [row] * len(example.parts)
    return _Labels(spans, part, parts, rows)


def _span_label(names: Sequence[Marked], begin: int, end: int) -> int:
    for mark in names:
        if mark.begin <= begin and end <= mark.end:
            return 1 if begin == mark.begin else 2
    return 0


def measure_reader(reader: Reader, questions: Sequence[AnsweredQuestion]) -> Measures:
    """See `ReaderTask.measure`."""
    pairs: list[tuple[int, int]] = []
    right, asked = 0, 0
    hit, said, wanted = 0, 0, 0
    for question in questions:
        if question.stance is None and not question.names:
            continue
        readings = reader.read(question.text, question.snippets)
        if question.stance is not None:
            balance = sum(r.relevance * (r.yes - r.no) for r in readings)
            pairs.append((question.stance, YES if balance > 0 else YES + 1))
            continue
        for text, reading in zip(question.snippets, readings, strict=True):
            gold = {(m.begin, m.end) for m in find_names(text, question.names)}
            found = {(n.begin, n.end) for n in reading.names if n.score >= 0.5}
            hit, said, wanted = hit + len(gold & found), said + len(found), wanted + len(gold)
        if question.kind == "factoid":
            asked += 1
            best = max(
                (
                    (name.score * reading.relevance, text[name.begin : name.end])
                    for text, reading in zip(question.snippets, readings, strict=True)
                    for name in reading.names
                ),
                default=(0.0, ""),
            )[1]
            right += any(best.lower() == n.lower() for group in question.names for n in group)
    measures: dict[str, Any] = {}
    if pairs:
        measures["yes/no macro F1"] = _macro_f1(pairs)
    if asked:
        measures["factoid first right"] = right / asked
    if said or wanted:
        measures["names F1"] = 2 * hit / (said + wanted)
    return measures


def _macro_f1(pairs: Sequence[tuple[int, int]]) -> float:
    """The mean of both answers' F1 over (gold, said)."""
    f1s = []
    for label in (YES, YES + 1):
        both = sum(gold == said == label for gold, said in pairs)
        total = sum((gold == label) + (said == label) for gold, said in pairs)
        f1s.append(2 * both / max(1, total))
    return sum(f1s) / 2
