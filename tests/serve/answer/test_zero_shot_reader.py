"""The reader made of a cross-encoder and an NLI model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from serve.answer.zero_shot_reader import PREMISE_SENTENCES, ZeroShotReader
from serve.support.attribute_sentences import Support

QUESTION = "Does aspirin reduce fever?"


class Words:
    """Scorer of a sentence by the share of the question's words that it contains."""

    def score(self, question: str, passages: Sequence[str]) -> NDArray[np.float32]:
        words = set(question.lower().strip("?").split())
        shares = [len(words & set(p.lower().strip(".").split())) / len(words) for p in passages]
        return np.array(shares, np.float32)


class Entails:
    """NLI model for which "not" contradicts and "reduces" entails."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        self.pairs += pairs
        return [
            Support(0.1, 0.8)
            if " not " in premise
            else Support(0.9 if "reduces" in premise else 0.2, 0.05)
            for premise, _ in pairs
        ]


def test_stance_is_read_from_the_best_sentences() -> None:
    entails = Entails()
    reader = ZeroShotReader(Words(), entails)
    many = "Cats sleep. " * 9 + "Aspirin reduces fever. It rained. " + "Cows do not fly. " * 9
    yes, no, silent, nothing = reader.read(
        QUESTION, [many, "Aspirin does not reduce fever.", "It was given.", ""]
    )
    assert (yes.yes, yes.no) == (0.9, 0.05)
    assert len(entails.pairs[0][0].split(". ")) == PREMISE_SENTENCES
    assert entails.pairs[0][1] == f'The answer to the question "{QUESTION}" is yes.'
    assert (no.yes, no.no) == (0.1, 0.8)
    assert silent.silent == pytest.approx(0.75)
    assert (nothing.relevance, nothing.silent, nothing.sentences) == (0.0, 1.0, ())


def test_relevance_is_the_best_sentence_score() -> None:
    text = "The sky is blue. Aspirin does reduce fever."
    first, second = ZeroShotReader(Words(), Entails()).read(QUESTION, ["It rains.", text])
    assert [round(s.score, 2) for s in second.sentences] == [0.0, 1.0]
    assert text[second.sentences[1].begin : second.sentences[1].end].startswith("Aspirin")
    assert (first.relevance, second.relevance) == (0.0, 1.0)
    assert all(0 <= r.yes + r.no <= 1 for r in (first, second))
