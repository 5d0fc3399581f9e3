"""Readings computed from given logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from cluster.models.readings import (
    LABELS,
    NO,
    RELEVANT,
    SILENT,
    SUMMARY,
    YES,
    BatchReader,
    PairLogits,
    Reading,
    ScoredSpan,
    join_windows,
    read_logits,
)

TEXT = "Aspirin treats fever in adults. IL-6 (the gene) inhibits the heart."
FIRST, SECOND = slice(3, 8), slice(8, None)
NAME = LABELS.index("I-ANSWER")


def word_offsets(text: str) -> np.ndarray:
    """Return offsets (n, 2) of the text's words, as a tokeniser does."""
    begins = [0] + [n + 1 for n, letter in enumerate(text) if letter == " "]
    return np.array([(b, text.find(" ", b) if " " in text[b:] else len(text)) for b in begins])


def window(
    text: str = TEXT, change: Callable[[np.ndarray], None] = lambda logits: None, row: int = 0
) -> PairLogits:
    """A window without any finding, changed by `change`; 3 tokens precede the text."""
    offsets = word_offsets(text)
    logits = np.zeros((3 + len(offsets), len(LABELS)), np.float32)
    logits[:, 0] = 9.0
    change(logits)
    return PairLogits(row, logits, offsets, np.arange(3, 3 + len(offsets)))


def test_relevance_and_stance_are_means_over_all_tokens() -> None:
    def change(logits: np.ndarray) -> None:
        logits[0, RELEVANT] = 2.0 * len(logits)
        logits[:2, NO] = 3.0 * len(logits) / 2

    found = read_logits(TEXT, window(change=change))
    odds = np.exp([0.0, 3.0, 0.0])
    assert found.relevance == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert [found.yes, found.no, found.silent] == pytest.approx(list(odds / odds.sum()))


def test_sentence_scores_are_means_over_its_tokens() -> None:
    def change(logits: np.ndarray) -> None:
        logits[:3, SUMMARY] = -50.0
        logits[FIRST, SUMMARY] = [1.0, 1.0, 1.0, 1.0, 6.0]
        logits[SECOND, SUMMARY] = -2.0
        logits[FIRST, YES] = 1.0
        logits[SECOND, NO] = [2.0, 6.0, 4.0, 4.0, 4.0, 4.0]

    first, second = read_logits(TEXT, window(change=change)).sentences
    assert [TEXT[s.begin : s.end] for s in (first, second)] == [TEXT[:31], TEXT[32:]]
    assert first.score == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert second.score == pytest.approx(1 / (1 + np.exp(2.0)))
    assert (first.lean, second.lean) == pytest.approx((1.0, -4.0))


def test_adjacent_words_form_one_name() -> None:
    def change(logits: np.ndarray) -> None:
        logits[[3, 4, 8, 10], NAME] = 20.0

    found = read_logits(TEXT, window(change=change)).names
    assert [TEXT[n.begin : n.end] for n in found] == ["Aspirin treats", "IL-6", "gene"]
    assert all(name.score > 0.9 for name in found)
    assert all(name.lean == 0 for name in found)


def names_of(tokens: list[str], text: str, labels: str) -> list[str]:
    """Return the names of a text whose tokens have the labels: B, I, or O for a clear O."""
    offsets, at = [], 0
    for token in tokens:
        at = text.index(token, at)
        offsets.append((at, at + len(token)))
    logits = np.zeros((len(tokens), len(LABELS)), np.float32)
    logits[:, 0] = 5.0
    for row, label in enumerate(labels):
        if label != "O":
            logits[row, LABELS.index(f"{label}-ANSWER")] = 20.0
    part = PairLogits(0, logits, np.array(offsets), np.arange(len(tokens)))
    return [text[n.begin : n.end] for n in read_logits(text, part).names]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("OBIIIOOOO", ["October 24, 2016"]),
        ("OBIIBOOOO", ["October 24", "2016"]),
        ("OBIOIOOOO", ["October 24", "2016"]),
    ],
)
def test_name_continues_over_labelled_punctuation(labels: str, names: list[str]) -> None:
    tokens = ["On", "October", "24", ",", "2016", "it", "was", "approved", "."]
    assert names_of(tokens, "On October 24, 2016 it was approved.", labels) == names


def test_subwords_form_one_word() -> None:
    assert names_of(["met", "formin", "helps"], "metformin helps", "IIO") == ["metformin"]


def test_name_score_is_the_mean_of_its_words() -> None:
    def change(logits: np.ndarray) -> None:
        logits[3, NAME] = 9.0
        logits[4, NAME] = 9.0 + np.log(3)
        logits[6, NAME] = 7.0

    (found,) = read_logits(TEXT, window(change=change)).names
    assert (TEXT[found.begin : found.end], found.score) == (
        "Aspirin treats",
        pytest.approx((0.5 + 0.75) / 2, abs=1e-3),
    )


def test_empty_text_has_no_spans() -> None:
    logits = np.zeros((3, len(LABELS)), np.float32)
    none = np.empty(0, np.int64)
    found = read_logits("", PairLogits(0, logits, none.reshape(0, 2), none))
    assert (found.names, found.sentences, found.relevance) == ((), (), 0.5)


def test_last_window_decides_the_stance() -> None:
    last = Reading(0.8, 0.1, 0.6, 0.3)
    clearer = Reading(0.9, 0.95, 0.0, 0.05)
    found = join_windows([last, clearer])
    assert (found.relevance, found.yes, found.no, found.silent) == (0.9, 0.1, 0.6, 0.3)
    assert join_windows([Reading(0.8, 0.1, 0.5, 0.4), clearer]).yes == 0.95


def test_joined_windows_keep_the_best_scores() -> None:
    shared = ScoredSpan(5, 9, 0.4)
    better = ScoredSpan(5, 9, 0.7, -2.0)
    quiet = Reading(0.9, 0.05, 0.05, 0.9, (shared,), (ScoredSpan(0, 4, 0.1), shared))
    clear = Reading(0.6, 0.1, 0.8, 0.1, (better,), (better, ScoredSpan(10, 12, 0.2)))
    found = join_windows([quiet, clear])
    assert (found.relevance, found.yes, found.no, found.silent) == (0.9, 0.1, 0.8, 0.1)
    assert found.names == (better,)
    assert found.sentences == (ScoredSpan(0, 4, 0.1), better, ScoredSpan(10, 12, 0.2))
    assert join_windows([clear]) is clear
    assert join_windows([]) == Reading(0.0, 0.0, 0.0, 1.0)


class TwoWindows(BatchReader):
    """Gives each text two windows, of which only the second is relevant; records its batches."""

    def __init__(self, batch_size: int) -> None:
        super().__init__(batch_size)
        self.batches: list[list[str]] = []

    def score(self, question: str, texts: Sequence[str]) -> list[PairLogits]:
        self.batches.append(list(texts))

        def relevant(logits: np.ndarray) -> None:
            logits[:, RELEVANT] = 5.0
            logits[:, SILENT] = -5.0

        found = []
        for row, text in enumerate(texts):
            found += [window(text, row=row), window(text, relevant, row)]
        return found


def test_texts_are_batched_by_length_and_returned_in_order() -> None:
    texts = ["one two three four.", "one.", "one two.", "one two three."]
    reader = TwoWindows(2)
    found = reader.read("what?", texts)
    assert reader.batches == [["one.", "one two."], ["one two three.", "one two three four."]]
    assert [reading.sentences[0].end for reading in found] == [len(text) for text in texts]
    assert all(reading.relevance > 0.99 and reading.silent < 0.01 for reading in found)
    assert reader.read("what?", []) == []
