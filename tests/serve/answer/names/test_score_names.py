from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp

import numpy as np
import pytest

from cluster.models.readings import ScoredSpan
from serve.answer.names.score_names import (
    MAX_CHARACTERS,
    MAX_SCORED,
    MAX_SENTENCES,
    MODEL_WEIGHT,
    best_sentences,
    weigh_names,
)
from serve.answer.read_evidence import ReadCitation
from tests.serve.answering import citation


def read(text: str, pmid: int = 1, **scores: float) -> ReadCitation:
    """Return a citation with a name for each of `scores`, whose underscores are spaces."""
    names = []
    for key, score in scores.items():
        begin = text.index(key.replace("_", " "))
        names.append(ScoredSpan(begin, begin + len(key), score))
    return citation(text, pmid, relevance=1.0, names=tuple(names))


class Table:
    """Model that knows the log-probabilities of names, and records what it was asked."""

    def __init__(self, known: dict[str, float]) -> None:
        self.known = known
        self.asked: list[tuple[str, list[str], list[str]]] = []

    def score(self, question: str, sentences: Sequence[str], names: Sequence[str]) -> np.ndarray:
        self.asked.append((question, list(sentences), list(names)))
        return np.array([self.known.get(name, -20.0) for name in names], np.float32)


def test_probable_names_move_to_the_front() -> None:
    found = [read("It inhibits SCD1 or HMGCR.", SCD1=0.8, HMGCR=0.5)]
    model = Table({"HMGCR": 0.0, "SCD1": -5.0})
    first, second = weigh_names("Which enzyme?", found, model)
    assert (first.names, second.names) == (("HMGCR",), ("SCD1",))
    assert first.score == pytest.approx(0.5)
    assert second.score == pytest.approx(0.8 * exp(-5 * MODEL_WEIGHT))
    assert model.asked == [("Which enzyme?", ["It inhibits SCD1 or HMGCR."], ["SCD1", "HMGCR"])]


def test_variants_of_names_are_names() -> None:
    text = "It inhibits human SCD1."
    (one,) = [read(text, SCD1=0.8)]
    wider = replace(one.reading, variants=(ScoredSpan(12, 22, 0.6),))
    found = weigh_names("Which enzyme?", [replace(one, reading=wider)], Table({"human SCD1": 0.0}))
    assert [name.names for name in found] == [("human SCD1",), ("SCD1",)]


def test_names_beyond_the_limit_are_left_out() -> None:
    text = " ".join(f"gene{n} acts." for n in range(MAX_SCORED + 2))
    scores = {f"gene{n} ".strip(): 1 / (n + 1) for n in range(MAX_SCORED + 2)}
    weighed = weigh_names("Which?", [read(text, **scores)], Table({"gene3": 0.0}))
    assert weighed[0].names == ("gene3",)
    assert len(weighed) == MAX_SCORED
    assert weigh_names("Which?", [], Table({})) == []


def test_model_reads_the_best_sentences_in_the_order_of_the_evidence() -> None:
    weak = citation("Weak one. Weak two.", 1, relevance=0.1)
    strong = citation(" ".join(f"Strong {n}." for n in range(MAX_SENTENCES)), 2)
    assert best_sentences([weak, strong]) == [f"Strong {n}." for n in range(MAX_SENTENCES)]
    long = citation(f"{'word ' * MAX_CHARACTERS}.", 1)
    assert sum(map(len, best_sentences([long, strong]))) == MAX_CHARACTERS
