"""What the reader makes of a model's logits, and which folders it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer, BertForTokenClassification

from cluster.errors import InputError
from cluster.models.reader import Reader
from cluster.models.readings import (
    LABELS,
    NO,
    RELEVANT,
    SUMMARY,
    YES,
    Reading,
    read_logits,
    split_passage,
)
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model

PASSAGE = "Aspirin treats fever in thousands of grown adults. IL-6 (the gene) inhibits the heart."
FIRST, SECOND = slice(1, 9), slice(9, None)
NAME = 2


def tokens_of(text: str) -> np.ndarray:
    """(n, 2) offsets of words, as a tokeniser would give them."""
    begins = [0] + [n + 1 for n, letter in enumerate(text) if letter == " "]
    return np.array([(b, text.find(" ", b) if " " in text[b:] else len(text)) for b in begins])


def logits_of(count: int) -> np.ndarray:
    """Logits (tokens, labels) of a model that finds nothing; the first row is [CLS]."""
    logits = np.zeros((count + 1, len(LABELS)), np.float32)
    logits[:, 0] = 9.0
    logits[:, RELEVANT] = -9.0
    return logits


def read(change: Any) -> Any:
    offsets = tokens_of(PASSAGE)
    logits = logits_of(len(offsets))
    change(logits)
    return read_logits(PASSAGE, offsets, logits, np.arange(1, len(offsets) + 1))


def test_a_sentence_has_the_first_tokens_logit_and_the_mean_of_its_own() -> None:
    def change(logits: np.ndarray) -> None:
        logits[:, RELEVANT] = 2.0
        logits[0, NO] = 5.0
        logits[1:, YES] = 1.0

    found = read(change)
    assert found.relevance == pytest.approx(1 / (1 + np.exp(-4.0)))
    assert found.no > 0.9 > found.yes > found.silent
    assert found.yes + found.no + found.silent == pytest.approx(1.0)


def test_a_passage_is_as_relevant_as_its_best_sentence_and_takes_that_ones_side() -> None:
    def change(logits: np.ndarray) -> None:
        logits[0, RELEVANT] = 0.0
        logits[SECOND, RELEVANT] = 9.0
        logits[SECOND, NO] = 9.0
        logits[FIRST, YES] = 9.0
        logits[[1, 9], NAME] = 20.0

    found = read(change)
    assert found.relevance > 0.99
    assert found.no > 0.99
    first, second = found.names
    assert second.score > 0.9 > 0.01 > first.score


def test_neighbouring_words_are_one_name_and_punctuation_parts_names() -> None:
    def change(logits: np.ndarray) -> None:
        logits[:, RELEVANT] = 9.0
        # Aspirin, treats, and IL-6 which is one word.
        logits[[1, 2, 9], NAME] = 20.0

    found = read(change)
    assert [PASSAGE[n.begin : n.end] for n in found.names] == ["Aspirin treats", "IL-6"]
    assert all(n.score > 0.9 for n in found.names)


def test_each_sentence_has_the_mean_of_its_tokens() -> None:
    def change(logits: np.ndarray) -> None:
        logits[:, RELEVANT] = 9.0
        logits[FIRST, SUMMARY] = 3.0
        logits[SECOND, SUMMARY] = -3.0

    first, second = read(change).sentences
    assert (
        PASSAGE[first.begin : first.end].strip()
        == "Aspirin treats fever in thousands of grown adults."
    )
    assert first.score > 0.9 > 0.1 > second.score


def test_a_short_sentence_is_judged_with_the_next_and_told_apart_from_it() -> None:
    text = "It does. Aspirin treats fever in thousands of grown adults."
    offsets = tokens_of(text)
    logits = logits_of(len(offsets))
    found = read_logits(text, offsets, logits, np.arange(1, len(offsets) + 1)).sentences
    assert [text[s.begin : s.end] for s in found] == ["It does.", text[9:]]
    assert found[0].score == found[1].score


def test_a_question_says_nothing() -> None:
    for text in ("Does aspirin treat fever?", "Does aspirin treat fever"):
        offsets = tokens_of(text)
        logits = logits_of(len(offsets))
        logits[:, [RELEVANT, YES]] = 9.0
        found = read_logits(text, offsets, logits, np.arange(1, len(offsets) + 1))
        assert found == Reading(0.0, 0.0, 0.0, 1.0)


def test_a_short_sentence_is_not_judged_with_a_question_or_across_it() -> None:
    text = "It does. Does it? Aspirin treats fever in thousands of grown adults."
    assert [text[b:e] for b, e in split_passage(text)] == ["It does.", text[18:]]


def tiny_reader(path: Path, labels: tuple[str, ...] = LABELS) -> Path:
    base = make_tiny_encoder(path)
    model = BertForTokenClassification.from_pretrained(
        base, id2label=dict(enumerate(labels)), label2id={n: i for i, n in enumerate(labels)}
    )
    model.save_pretrained(path / "reader")
    AutoTokenizer.from_pretrained(base).save_pretrained(path / "reader")
    return path / "reader"


def test_readings_do_not_depend_on_what_is_read_beside_them(tmp_path: Path) -> None:
    reader = Reader.load(tiny_reader(tmp_path), dtype="float32", max_tokens=32, batch_size=2)
    texts = ["aspirin treats fever .", "the heart", "", "a gene inhibits the tumour in patients ."]
    together = reader.read("what treats fever ?", texts)
    for text, found in zip(texts, together, strict=True):
        [alone] = reader.read("what treats fever ?", [text])
        assert alone.relevance == pytest.approx(found.relevance, abs=1e-5)
        assert [n.begin for n in alone.names] == [n.begin for n in found.names]
    assert reader.read("what ?", []) == []


def test_a_passage_longer_than_the_model_sees_is_cut_and_not_refused(tmp_path: Path) -> None:
    reader = Reader.load(tiny_reader(tmp_path), dtype="float32", max_tokens=16, batch_size=2)
    [found] = reader.read("what treats fever ?", ["aspirin treats fever . " * 50])
    assert found.sentences


def test_a_question_longer_than_the_model_sees_is_cut_and_not_refused(tmp_path: Path) -> None:
    reader = Reader.load(tiny_reader(tmp_path), dtype="float32", max_tokens=16, batch_size=2)
    assert len(reader.read("what treats fever ? " * 50, ["aspirin treats fever .", ""])) == 2


def test_a_model_with_other_labels_is_no_reader(tmp_path: Path) -> None:
    folder = tiny_reader(tmp_path, ("O", "B-Disease", "I-Disease"))
    with pytest.raises(InputError, match="its labels are not O, B-ANSWER"):
        Reader.load(folder)
