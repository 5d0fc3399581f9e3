"""What the reader (cluster.models.reader) says of a passage, from its logits; needs no torch.

What is said of a sentence is the first token's logit and the mean over the sentence's tokens
together: each is judged by itself, with what stands around it in view.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cluster.text.sentences import asks, sentence_spans

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


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span of a passage, in code points, end exclusive; `score` is a probability."""

    begin: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What one passage says to one question; all figures are probabilities.

    `yes`, `no` and `silent` add up to 1 and are of use for yes/no questions alone. `names` are
    the spans that may name the answer, `sentences` all sentences that the model saw, each with how
    much of an answer it is; both in the order of the passage.
    """

    relevance: float
    yes: float
    no: float
    silent: float
    names: tuple[ScoredSpan, ...] = ()
    sentences: tuple[ScoredSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class PairLogits:
    """Of a question and a passage: `logits` (tokens, labels), and which tokens are the passage's.

    These are `seen`, with `offsets` (n, 2) in the passage.
    """

    logits: Scores
    offsets: NDArray[np.int64]
    seen: NDArray[np.int64]


class BatchReader:
    """Reads passages in batches of `batch_size` by what `score` gives of each pair."""

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size

    def score(self, question: str, passages: Sequence[str]) -> Iterable[PairLogits]:
        """The logits of each pair, in the order of `passages`, from one pass over all of them."""
        raise NotImplementedError

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        """One Reading a passage, in their order, made of those of its sentences."""
        # Alike lengths share a batch, so little is padded.
        order = sorted(range(len(passages)), key=lambda place: len(passages[place]))
        found: dict[int, Reading] = {}
        for first in range(0, len(order), self._batch_size):
            batch = order[first : first + self._batch_size]
            texts = [passages[place] for place in batch]
            for place, text, pair in zip(batch, texts, self.score(question, texts), strict=True):
                found[place] = read_logits(text, pair.offsets, pair.logits, pair.seen)
        return [found[place] for place in range(len(passages))]


def split_passage(passage: str) -> list[tuple[int, int]]:
    """(begin, end) of the parts that are judged alone: sentences, short ones with the next.

    Questions are none: the reader takes "Is X safe?" for a yes to that.
    """
    parts: list[tuple[int, int]] = []
    is_short = False
    for begin, end in sentence_spans(passage):
        if asks(passage[begin:end]):
            is_short = False
            continue
        if is_short:
            parts[-1] = (parts[-1][0], end)
        else:
            parts.append((begin, end))
        is_short = end - parts[-1][0] < SHORT_CHARS
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
