"""The reader: what a passage says to a question, in one pass of a small model over both.

A token classifier over "question [SEP] passage" whose labels answer five questions at once, so
that one forward pass costs what a reranker costs: is a sentence relevant, does it affirm or deny
a yes/no question, does it belong in a summary, and which words name the answer. What is said of a
sentence is the first token's logit and the mean over the sentence's tokens together: each is
judged by itself, with what stands around it in view. Training (`citeray train reader`) measures
with this code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForTokenClassification, AutoTokenizer

from cluster.models.hardware import choose_device, choose_dtype
from cluster.models.load_safely import LOAD_ERRORS, SAFE_WEIGHTS, SAFELY, unloadable
from cluster.models.openvino_runtime import (
    PROBE_PASSAGES,
    PROBE_QUESTIONS,
    Runtime,
    choose_runtime,
)
from cluster.models.readings import Reading, ScoredSpan
from cluster.text.sentences import sentence_spans

LABELS = ("O", "B-ANSWER", "I-ANSWER", "RELEVANT", "YES", "NO", "SILENT", "SUMMARY")
_O, _B, _I, RELEVANT, YES, NO, SILENT, SUMMARY = range(len(LABELS))
SPAN_LABELS = slice(_O, _I + 1)
STANCE_LABELS = slice(YES, SILENT + 1)

# How much training counts each stance, since most yes/no questions are answered yes. Of BioASQ's
# examples the affirming still outweigh the denying by 1.3 (2,872 to 1.5 times 1,470), which reading
# makes up for: its stances are those of a world with as many of each.
STANCE_WEIGHTS = (1.0, 1.5, 1.0)
READ_WEIGHTS = (1.0, 1.3, 1.0)
# A word belongs to a name from this probability on. Low: who uses the names weighs their scores.
NAME_SHARE = 0.35
# A shorter sentence is read together with the next.
SHORT_CHARS = 40
# Names hold their hyphens, slashes, primes and decimal points: IL-6, PI3K/AKT, 5'-UTR, 2.5, 30%.
_WORD = re.compile(r"[^\W_]+(?:[-'/.+\u2019][^\W_]+)*[+%]?")
# Between two words of one name. "and" and brackets part names: members of a list, short forms.
_INSIDE_NAME = re.compile(r"[ \u00a0]{0,2}(?:(?:of|the) )?")

Scores = NDArray[np.float32]


class Reader:
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
        self._model = model.eval()
        self._threads = threads
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._batch_size = batch_size

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
        choose_runtime(
            reader._model,
            [partial(reader._probe, texts) for texts in (PROBE_QUESTIONS, PROBE_PASSAGES)],
            runtime=runtime,
            device=device,
            dtype=model.dtype,
            threads=threads,
            name=folder.name,
        )
        return reader

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        """One Reading a passage, in their order, made of those of its sentences."""
        # Alike lengths share a batch, so little is padded.
        order = sorted(range(len(passages)), key=lambda place: len(passages[place]))
        found: dict[int, Reading] = {}
        for first in range(0, len(order), self._batch_size):
            batch = order[first : first + self._batch_size]
            texts = [passages[place] for place in batch]
            found.update(zip(batch, self._read_batch(question, texts), strict=True))
        return [found[place] for place in range(len(passages))]

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
        inputs = encode_pairs(self._tokenizer, questions, list(passages), self._max_tokens)
        known = {k: v.to(self._model.device) for k, v in inputs.items() if k != "offset_mapping"}
        with torch.inference_mode():
            return inputs, self._model(**known).logits.float().cpu()

    def _read_batch(self, question: str, passages: list[str]) -> Iterator[Reading]:
        inputs, logits = self._run(question, passages)
        offsets = inputs["offset_mapping"].numpy()
        for row, passage in enumerate(passages):
            seen = passage_tokens(inputs, row)
            yield read_logits(passage, offsets[row][seen], logits[row].numpy(), seen)


def split_passage(passage: str) -> list[tuple[int, int]]:
    """(begin, end) of the parts that are judged alone: sentences, short ones with the next."""
    parts: list[tuple[int, int]] = []
    for begin, end in sentence_spans(passage):
        if parts and parts[-1][1] - parts[-1][0] < SHORT_CHARS:
            parts[-1] = (parts[-1][0], end)
        else:
            parts.append((begin, end))
    return parts


def join_readings(parts: Sequence[Reading]) -> Reading:
    """The Reading of a passage by those of its parts.

    The passage is as relevant, and says as much, as the part that is or does most. Names and
    sentences of parts that are less relevant count less.
    """
    relevance = max((reading.relevance for reading in parts), default=0.0)
    if not relevance:
        return Reading(0.0, 0.0, 0.0, 1.0)
    shares = [reading.relevance / relevance for reading in parts]
    yes = max(share * part.yes for share, part in zip(shares, parts, strict=True))
    no = max(share * part.no for share, part in zip(shares, parts, strict=True))
    total = max(1.0, yes + no)
    return Reading(
        relevance,
        yes / total,
        no / total,
        1 - (yes + no) / total,
        tuple(_weighed(parts, shares, "names")),
        tuple(_weighed(parts, shares, "sentences")),
    )


def _weighed(parts: Sequence[Reading], shares: Sequence[float], kind: str) -> Iterator[ScoredSpan]:
    for share, reading in zip(shares, parts, strict=True):
        for span in getattr(reading, kind):
            yield replace(span, score=share * span.score)


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


def read_logits(
    passage: str, offsets: NDArray[np.int64], logits: Scores, seen: NDArray[np.int64]
) -> Reading:
    """The Reading of `logits` (tokens, labels); `offsets` (n, 2) are those of the `seen` tokens."""
    parts = []
    sentences = sentence_spans(passage)
    for begin, end, held in _held(split_passage(passage), offsets):
        own = logits[seen[held]]
        whole = logits[0] + own.mean(0)
        yes, no, silent = _softmax(whole[STANCE_LABELS] + np.log(READ_WEIGHTS)).tolist()
        inside = 1 - _softmax(own[:, SPAN_LABELS])[:, _O]
        words = score_words(passage, (begin, end), offsets[held], inside)
        score = _sigmoid(whole[SUMMARY])
        said = tuple(ScoredSpan(b, e, score) for b, e in sentences if begin <= b < end)
        names = tuple(join_words(passage, words))
        relevance = _sigmoid(whole[RELEVANT])
        parts.append(Reading(relevance, yes, no, silent, names, said))
    return join_readings(parts)


def score_words(
    passage: str, part: tuple[int, int], offsets: NDArray[np.int64], inside: Scores
) -> list[ScoredSpan]:
    """Each word of a part of the passage with the mean probability of its tokens; words that
    were cut off are left out.
    """
    words = [match.span() for match in _WORD.finditer(passage, *part)]
    return [
        ScoredSpan(begin, end, float(inside[held].mean()))
        for begin, end, held in _held(words, offsets)
    ]


def join_words(passage: str, words: Sequence[ScoredSpan]) -> Iterator[ScoredSpan]:
    """Runs of words that reach NAME_SHARE, with nothing but space between them, as one name."""
    run: list[ScoredSpan] = []
    for word in words:
        if word.score < NAME_SHARE:
            continue
        if run and not _INSIDE_NAME.fullmatch(passage[run[-1].end : word.begin]):
            yield _joined(run)
            run = []
        run.append(word)
    if run:
        yield _joined(run)


def _joined(run: Sequence[ScoredSpan]) -> ScoredSpan:
    score = sum(word.score for word in run) / len(run)
    return ScoredSpan(run[0].begin, run[-1].end, score)


def _held(
    spans: Sequence[tuple[int, int]], offsets: NDArray[np.int64]
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Each span with the rows of `offsets` that begin in it; spans without any are left out."""
    begins = offsets[:, 0] if len(offsets) else np.empty(0, np.int64)
    for begin, end in spans:
        low, high = np.searchsorted(begins, (begin, end))
        if low < high:
            yield begin, end, np.arange(low, high)


def _softmax(logits: Scores) -> Scores:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    shares: Scores = powers / powers.sum(-1, keepdims=True)
    return shares


def _sigmoid(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))
