from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.answers import Sentence
from serve.support.attribute_sentences import FallbackScorer, Support
from serve.support.weigh_evidence import Thresholds, note_contradictions, split_by_stance
from tests.serve.answering import evidence

THRESHOLDS = Thresholds(0.5, 0.5)


class ScriptedScorer:
    """Scorer that reads the score from the premise: "for 0.9", "against 0.8", otherwise 0."""

    def __init__(self) -> None:
        self.asked = 0

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        self.asked += len(pairs)
        found = []
        for premise, _ in pairs:
            words = premise.rstrip(".").split()
            level = float(words[1]) if len(words) > 1 and words[0] in ("for", "against") else 0.0
            for_ = level if words[0] == "for" else 0.0
            found.append(Support(for_, level if words[0] == "against" else 0.0))
        return found


def test_stance_is_the_side_that_reaches_its_threshold() -> None:
    stances = {
        (0.5, 0.0): "support",
        (0.4, 0.5): "contradict",
        (0.4, 0.4): "neutral",
        (0.7, 0.6): "support",
        (0.6, 0.7): "contradict",
    }
    assert {sides: THRESHOLDS.stance(Support(*sides)) for sides in stances} == stances


@pytest.mark.parametrize(
    ("texts", "supporting", "contradicting"),
    [
        (
            ("for 0.6", "against 0.7", "nothing", "for 0.9", "against 0.9"),
            ["for 0.9", "for 0.6"],
            ["against 0.9", "against 0.7"],
        ),
        # Neutral passages fill up the supporting ones.
        (("neutral one", "for 0.6", "neutral two"), ["for 0.6", "neutral one"], []),
    ],
)
def test_passages_are_split_by_stance_and_ordered_by_strength(
    texts: Sequence[str], supporting: list[str], contradicting: list[str]
) -> None:
    sides = split_by_stance("claim", evidence(*texts), ScriptedScorer(), THRESHOLDS, 2)
    found = [[item.passage.text for item in side] for side in sides]
    assert found == [supporting, contradicting]


@pytest.mark.parametrize(
    ("texts", "contradicted"),
    [
        (("for 0.9", "against 0.6", "against 0.9", "nothing"), (3, 2)),
        (("for 0.9", *["against 0.9"] * 5), (2, 3, 4)),
        # The sentence cites this citation itself.
        (("against 0.9",), ()),
    ],
)
def test_contradicting_pmids_are_noted_by_strength(
    texts: Sequence[str], contradicted: tuple[int, ...]
) -> None:
    said = [Sentence("It helps.", (1,), 0.9)]
    (noted,), stances = note_contradictions(said, evidence(*texts), ScriptedScorer(), THRESHOLDS)
    assert noted.contradicted == contradicted
    sides = {"for": "support", "against": "contradict", "nothing": "neutral"}
    assert list(stances.values()) == [sides[text.split()[0]] for text in texts]


def test_no_stances_without_an_answer() -> None:
    assert note_contradictions([], evidence("for 0.9"), ScriptedScorer(), THRESHOLDS) == ((), {})


def test_fallback_scorer_scores_a_pair_once() -> None:
    scripted = ScriptedScorer()
    scorer = FallbackScorer([], scripted)
    first = scorer.score([("for 0.9", "x"), ("for 0.9", "x"), ("nothing", "x")])
    assert scorer.score([("nothing", "x")]) == first[2:]
    assert scripted.asked == 2
