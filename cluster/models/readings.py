"""Compute the reader's result for a text (cluster.models.reader) from its logits, without torch.

Relevance and stance are read from the mean of the logits over all tokens of the pair, the score
of a sentence from the mean over its own tokens, and names from single tokens. Training
(pipelines.train.reader) computes its losses from the same means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from cluster.text.sentences import sentence_spans

LABELS = ("O", "B-ANSWER", "I-ANSWER", "RELEVANT", "YES", "NO", "SILENT", "SUMMARY")
_O, _B, _I, RELEVANT, YES, NO, SILENT, SUMMARY = range(len(LABELS))
SPAN_LABELS = slice(_O, _I + 1)
STANCE_LABELS = slice(YES, SILENT + 1)

# Lowest probability of a word in a name. It is low because callers weight names by score.
NAME_SHARE = 0.2
# Alternative values of this threshold, which give shorter and longer variants of a name.
LEVELS = (0.05, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
# A window takes a stance if its relevance times its probability of a stance is at least this.
MIN_STANCE = 0.5
# Overlap of two windows of one text, in tokens.
STRIDE = 96
# Names may have hyphens, slashes, primes, decimal points: IL-6, PI3K/AKT, 5'-UTR, 2.5, 30%.
_WORD = re.compile(r"[^\W_]+(?:[-'/.+\u2019][^\W_]+)*[+%]?")

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A span of a text, in code points, end exclusive; `score` is a probability.

    `lean` is the difference between a sentence's logits for yes and for no; 0 for names.
    """

    begin: int
    end: int
    score: float
    lean: float = 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """The reader's result for a question and a text.

    `relevance` is the probability that the text answers the question. `yes`, `no` and `silent` add
    up to 1 and are meant for yes/no questions only. `names` are the spans that may name the answer,
    `sentences` all sentences, scored by how well they answer; both are in the order of the text.
    `variants` are other spans that may name it: shorter and longer ones, which overlap `names`.
    """

    relevance: float
    yes: float
    no: float
    silent: float
    names: tuple[ScoredSpan, ...] = ()
    sentences: tuple[ScoredSpan, ...] = ()
    variants: tuple[ScoredSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class PairLogits:
    """Logits of a question and one window of a text.

    `logits` (tokens, labels) has a row for each token of the pair, without padding; `seen` are the
    rows that belong to the text, with their `offsets` (n, 2) in the text. `row` is the index of
    the text in its batch.
    """

    row: int
    logits: Scores
    offsets: NDArray[np.int64]
    seen: NDArray[np.int64]


class BatchReader:
    """Reads texts in batches of `batch_size` from the logits that `score` returns."""

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size

    def score(self, question: str, texts: Sequence[str]) -> Iterable[PairLogits]:
        """Return the logits of each window of each text, a text's last window first."""
        raise NotImplementedError

    def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """Return one Reading for each text, in their order."""
        # Texts of similar length share a batch to reduce padding.
        order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        found: dict[int, list[Reading]] = {position: [] for position in order}
        spans = [split_text(text) for text in texts]
        for first in range(0, len(order), self._batch_size):
            batch = order[first : first + self._batch_size]
            for window in self.score(question, [texts[position] for position in batch]):
                position = batch[window.row]
                found[position].append(read_logits(texts[position], window, spans[position]))
        return [join_windows(found[position]) for position in range(len(texts))]


def join_windows(windows: Sequence[Reading]) -> Reading:
    """Combine the readings of a text's windows, the last window first, into one Reading.

    The text is as relevant as its most relevant window. Its stance is that of its last window,
    which holds the conclusion, or of its clearest window if the last one takes no stance. Sentences
    and names that two windows share keep the higher score.
    """
    if not windows:
        return Reading(0.0, 0.0, 0.0, 1.0)
    if len(windows) == 1:
        return windows[0]
    last = windows[0]
    clearest = last if _stance_strength(last) >= MIN_STANCE else max(windows, key=_stance_strength)
    return Reading(
        max(reading.relevance for reading in windows),
        clearest.yes,
        clearest.no,
        clearest.silent,
        _best(span for reading in windows for span in reading.names),
        _best(span for reading in windows for span in reading.sentences),
        _best(span for reading in windows for span in reading.variants),
    )


def _stance_strength(reading: Reading) -> float:
    return reading.relevance * (1 - reading.silent)


def _best(spans: Iterable[ScoredSpan]) -> tuple[ScoredSpan, ...]:
    best: dict[tuple[int, int], ScoredSpan] = {}
    for span in spans:
        known = best.get((span.begin, span.end))
        if known is None or span.score > known.score:
            best[span.begin, span.end] = span
    return tuple(sorted(best.values(), key=lambda span: span.begin))


class TextSpans(NamedTuple):
    """Sentences and words of a text, each as begin and end in code points."""

    sentences: Sequence[tuple[int, int]]
    words: Sequence[tuple[int, int]]


def split_text(text: str) -> TextSpans:
    """Return the sentences and words of `text`."""
    return TextSpans(sentence_spans(text), [match.span() for match in _WORD.finditer(text)])


def read_logits(text: str, window: PairLogits, spans: TextSpans | None = None) -> Reading:
    """Return the Reading of one window of `text`; `spans` avoids splitting the text again."""
    spans = spans or split_text(text)
    logits, offsets = window.logits, window.offsets
    pair = logits.mean(0)
    yes, no, silent = softmax(pair[STANCE_LABELS]).tolist()
    own = logits[window.seen]
    sentences = []
    for begin, end, held in _rows_within(spans.sentences, offsets):
        mean = own[held].mean(0)
        lean = float(mean[YES] - mean[NO])
        sentences.append(ScoredSpan(begin, end, float(expit(mean[SUMMARY])), lean))
    words = _words(spans.words, offsets, own[:, SPAN_LABELS]) if len(own) else []
    names = tuple(_names(words, NAME_SHARE))
    known = {(span.begin, span.end) for span in names}
    others = _best(span for level in LEVELS for span in _names(words, level))
    variants = tuple(span for span in others if (span.begin, span.end) not in known)
    relevance = float(expit(pair[RELEVANT]))
    return Reading(relevance, yes, no, silent, names, tuple(sentences), variants)


class _Word(NamedTuple):
    """A word, the probability that it is in a name, and whether it continues the word before it.

    `between` is the lowest probability of the punctuation before it; 1 without punctuation.
    """

    span: ScoredSpan
    continues: bool
    between: float


def _words(
    words: Sequence[tuple[int, int]], offsets: NDArray[np.int64], logits: Scores
) -> list[_Word]:
    shares = softmax(logits, axis=-1)
    inside = 1 - shares[:, _O]
    found, end = [], 0
    for begin, word_end, held in _rows_within(words, offsets):
        first = held[0]
        span = ScoredSpan(begin, word_end, float(inside[held].mean()))
        between = float(inside[end:first].min()) if first > end else 1.0
        found.append(_Word(span, bool(shares[first, _B] <= shares[first, _I]), between))
        end = held[-1] + 1
    return found


def _names(words: Sequence[_Word], least: float) -> Iterator[ScoredSpan]:
    """Yield each run of words that reach the probability `least` as one name.

    A run includes the punctuation between two words ("October 24, 2016") if all tokens of the
    punctuation reach `least` too. It ends before a word whose first token is more likely to
    begin a name than to continue one.
    """
    run: list[ScoredSpan] = []
    for word in words:
        is_inside = word.span.score >= least
        if run and not (is_inside and word.continues and word.between >= least):
            yield _joined(run)
            run = []
        if is_inside:
            run.append(word.span)
    if run:
        yield _joined(run)


def _joined(run: Sequence[ScoredSpan]) -> ScoredSpan:
    score = sum(word.score for word in run) / len(run)
    return ScoredSpan(run[0].begin, run[-1].end, score)


def _rows_within(
    spans: Sequence[tuple[int, int]], offsets: NDArray[np.int64]
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Yield each span with the rows of `offsets` that begin in it; skip spans without any."""
    begins = offsets[:, 0] if len(offsets) else np.empty(0, np.int64)
    for begin, end in spans:
        low, high = np.searchsorted(begins, (begin, end))
        if low < high:
            yield begin, end, np.arange(low, high)
