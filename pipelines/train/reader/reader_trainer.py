"""The reader's labels and losses.

The model is a token classifier over "question [SEP] text" (cluster.models.reader): relevance and
stance are read from the mean of the logits over all tokens, a sentence's score from the mean over
its own tokens, names from each token. Only the head and the matrices of the encoder, or adapters
of these, are trained; embeddings, biases and normalisation stay, so that the change can ship as an
adapter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from peft import PeftModel
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from cluster.models.reader import cut_question
from cluster.models.readings import RELEVANT, SPAN_LABELS, STANCE_LABELS, SUMMARY
from pipelines.train.reader.records import ReaderExample
from pipelines.train.recipe import ReaderLosses
from pipelines.train.run_trainer import PAD_TO

UNKNOWN = -100
# The head's module in transformers' token classifiers.
HEAD = "classifier"
_LAYER = re.compile(r"\.layer\.(\d+)\.")
# Weights of the labels O, B and I: most words are not in a name.
SPAN_WEIGHTS = (0.3, 1.0, 1.0)


def trained_parameters(model: nn.Module, frozen_layers: int = 0) -> list[str]:
    """Freeze all but the head and the matrices of the upper layers, or of their adapters.

    Return the names of the trained parameters.
    """
    learned, is_adapter = [], isinstance(model, PeftModel)
    for name, parameter in model.named_parameters():
        layer = _LAYER.search(name)
        is_upper = layer and int(layer[1]) >= frozen_layers and parameter.ndim == 2
        if is_adapter:
            parameter.requires_grad = ".modules_to_save." in name or bool(
                is_upper and ".lora_" in name
            )
        else:
            parameter.requires_grad = bool(is_upper) or name.startswith(HEAD)
        if parameter.requires_grad:
            learned.append(name)
    return learned


def encode_example(tokenizer: Any, example: ReaderExample, max_tokens: int) -> dict[str, Any]:
    """Return the token ids and labels of an example; a long text keeps only its end.

    `spans` is 0, 1 or 2 (outside, begin, inside) or UNKNOWN for each token, `sentence` the number
    of its sentence or -1, `scores` the sentences' scores.
    """
    text = example.text
    question = cut_question(tokenizer, example.question, max_tokens)
    asked = len(tokenizer(question, add_special_tokens=False)["input_ids"])
    room = max_tokens - asked - tokenizer.num_special_tokens_to_add(pair=True)
    begin = 0
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    if len(found["input_ids"]) > room:
        begin = found["offset_mapping"][-room][0]
    inputs = tokenizer(
        question,
        text[begin:],
        truncation="only_second",
        max_length=max_tokens,
        return_offsets_mapping=True,
    )
    sequence = inputs.sequence_ids()
    spans, sentence = [], []
    for part, (first, last) in zip(sequence, inputs["offset_mapping"], strict=True):
        first, last = first + begin, last + begin
        if part != 1:
            spans.append(UNKNOWN)
            sentence.append(-1)
            continue
        spans.append(UNKNOWN if example.names is None else _span_label(example, first, last))
        sentence.append(_sentence_of(example, first))
    return {
        "input_ids": inputs["input_ids"],
        "attention_mask": inputs["attention_mask"],
        "spans": spans,
        "sentence": sentence,
        "scores": [s.score for s in example.sentences or ()],
        "relevant": -1.0 if example.relevant is None else example.relevant,
        "stance": example.stance or (-1.0, -1.0, -1.0),
        "weight": example.weight,
    }


def _span_label(example: ReaderExample, begin: int, end: int) -> int:
    for mark in example.names or ():
        if mark.begin <= begin and end <= mark.end:
            return 1 if begin == mark.begin else 2
    return 0


def _sentence_of(example: ReaderExample, at: int) -> int:
    found = (n for n, s in enumerate(example.sentences or ()) if s.begin <= at < s.end)
    return next(found, -1)


def collate(rows: Sequence[dict[str, Any]], pad_id: int) -> dict[str, Tensor]:
    """Pad a batch; sentences of all rows are numbered in one sequence."""
    width = -(-max(len(row["input_ids"]) for row in rows) // PAD_TO) * PAD_TO
    first, numbers, scores = 0, [], []
    for row in rows:
        numbers.append([n + first if n >= 0 else -1 for n in row["sentence"]])
        scores += row["scores"]
        first += len(row["scores"])

    def padded(values: Sequence[Sequence[int]], fill: int) -> Tensor:
        return torch.tensor([[*v, *[fill] * (width - len(v))] for v in values])

    return {
        "input_ids": padded([row["input_ids"] for row in rows], pad_id),
        "attention_mask": padded([row["attention_mask"] for row in rows], 0),
        "spans": padded([row["spans"] for row in rows], UNKNOWN),
        "sentence": padded(numbers, -1),
        "scores": torch.tensor(scores, dtype=torch.float32),
        "relevant": torch.tensor([row["relevant"] for row in rows], dtype=torch.float32),
        "stance": torch.tensor([row["stance"] for row in rows], dtype=torch.float32),
        "weight": torch.tensor([row["weight"] for row in rows], dtype=torch.float32),
    }


def pair_logits(logits: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the logits over the tokens of each pair, (pairs, labels)."""
    seen = mask.unsqueeze(-1).to(logits.dtype)
    return (logits * seen).sum(1) / seen.sum(1)


def reader_loss(logits: Tensor, batch: dict[str, Tensor], losses: ReaderLosses) -> Tensor:
    """Return the weighted sum of the four losses; `logits` are (pairs, tokens, labels)."""
    pairs = pair_logits(logits, batch["attention_mask"])
    terms = (
        losses.relevance * _relevance(pairs, batch),
        losses.stance * _stance(pairs, batch),
        losses.sentences * _sentences(logits, batch),
        losses.names * _names(logits, batch["spans"]),
    )
    return torch.stack(terms).sum()


def _relevance(pairs: Tensor, batch: dict[str, Tensor]) -> Tensor:
    known = batch["relevant"] >= 0
    if not known.any():
        return pairs.sum() * 0
    return binary_cross_entropy_with_logits(
        pairs[known, RELEVANT], batch["relevant"][known], batch["weight"][known]
    )


def _stance(pairs: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """Return the sum of losses divided by the batch size; few yes/no questions thus count less."""
    known = batch["stance"][:, 0] >= 0
    if not known.any():
        return pairs.sum() * 0
    losses = cross_entropy(pairs[known][:, STANCE_LABELS], batch["stance"][known], reduction="none")
    return (losses * batch["weight"][known]).sum() / len(pairs)


def _sentences(logits: Tensor, batch: dict[str, Tensor]) -> Tensor:
    number = batch["sentence"]
    rows, columns = (number >= 0).nonzero(as_tuple=True)
    if not len(rows):
        return logits.sum() * 0
    held = number[rows, columns]
    tokens = logits[rows, columns, SUMMARY]
    count = len(batch["scores"])
    sums = tokens.new_zeros(count).index_add(0, held, tokens)
    counts = torch.bincount(held, minlength=count)
    there = counts > 0
    means = sums[there] / counts[there]
    return binary_cross_entropy_with_logits(means, batch["scores"][there])


def _names(logits: Tensor, spans: Tensor) -> Tensor:
    if not (spans != UNKNOWN).any():
        return logits.sum() * 0
    return cross_entropy(
        logits[..., SPAN_LABELS].flatten(0, 1),
        spans.flatten(),
        logits.new_tensor(SPAN_WEIGHTS),
        ignore_index=UNKNOWN,
    )
