from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.answers import Sentence
from serve.support.attribute_sentences import FallbackScorer, Support
from serve.support.weigh_evidence import (
    Thresholds,
    note_contradictions,
    split_by_stance,
)
from tests.serve.answering import evidence

THRESHOLDS = Thresholds(0.5, 0.5)


class Told:
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


def test_stance_is_the_side_that_reaches_its_threshold(subtests: pytest.Subtests) -> None:
    for support, stance in [
        (Support(0.5, 0.0), "support"),
        (Support(0.4, 0.5), "contradict"),
        (Support(0.4, 0.4), "neutral"),
        (Support(0.7, 0.6), "support"),
        (Support(0.6, 0.7), "contradict"),
    ]:
        with subtests.test(support=support, stance=stance):
            assert THRESHOLDS.stance(support) == stance


def test_split_by_stance_orders_by_strength() -> None:
    items = evidence("for 0.6", "against 0.7", "nothing", "for 0.9", "against 0.9")
    for_, against = split_by_stance("claim", items, Told(), THRESHOLDS, 2)
    assert [item.passage.text for item in for_] == ["for 0.9", "for 0.6"]
    assert [item.passage.text for item in against] == ["against 0.9", "against 0.7"]


def test_split_by_stance_adds_neutral_passages() -> None:
    items = evidence("neutral one", "for 0.6", "neutral two")
    for_, against = split_by_stance("claim", items, Told(), THRESHOLDS, 2)
    assert [item.passage.text for item in for_] == ["for 0.6", "neutral one"]
    assert against == []


def test_contradicting_pmids_are_ordered_by_strength() -> None:
    items = evidence("for 0.9", "against 0.6", "against 0.9", "nothing")
    said = [Sentence("It helps.", (1,), 0.9)]
    (noted,), stances = note_contradictions(said, items, Told(), THRESHOLDS)
    assert noted.contradicted == (3, 2)
    assert list(stances.values()) == ["support", "contradict", "contradict", "neutral"]


def test_at_most_three_pmids_contradict() -> None:
    items = evidence("for 0.9", *["against 0.9"] * 5)
    (noted,), _ = note_contradictions([Sentence("It.", (1,), 1.0)], items, Told(), THRESHOLDS)
    assert noted.contradicted == (2, 3, 4)


def test_cited_citation_does_not_contradict() -> None:
    said = [Sentence("It helps.", (1,), 0.9)]
    (noted,), _ = note_contradictions(said, evidence("against 0.9"), Told(), THRESHOLDS)
    assert noted.contradicted == ()


def test_no_stances_without_an_answer() -> None:
    assert note_contradictions([], evidence("for 0.9"), Told(), THRESHOLDS) == ((), {})


def test_fallback_scorer_scores_a_pair_once() -> None:
    told = Told()
    scorer = FallbackScorer([], told)
    first = scorer.score([("for 0.9", "x"), ("for 0.9", "x"), ("nothing", "x")])
    assert scorer.score([("nothing", "x")]) == first[2:]
    assert told.asked == 2
