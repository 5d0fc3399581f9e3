"""The four measures, by hand and beside the ragas library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.answers.judge_answers import (
    MAX_SNIPPETS,
    MEASURES,
    average_precision,
    mean_cosine,
)
from tests.evaluation.answers.judged_samples import (
    over_http,
    run,
    sample,
    values,
)
from tests.evaluation.scripted_judge import ScriptedJudge


def test_the_four_measures_by_hand_over_http(url: str) -> None:
    assert values(over_http(url), sample()) == pytest.approx(
        {
            # A and C of A, B, C.
            "faithfulness": 2 / 3,
            # Cosines with (1, 0): 1, 0.6 and 0.
            "answer relevancy": (1 + 0.6 + 0) / 3,
            # Useful at ranks 1 and 3: (1/1 + 2/3) / 2.
            "context precision": (1 + 2 / 3) / 2,
            # D and G of D, E, F, G.
            "context recall": 2 / 4,
            # Two of the three, as paper 002 counts them.
            "passages relevant": 2 / 3,
            "judge failures": 0,
        }
    )


def test_the_share_of_gold_snippets_that_the_passages_cover(judge: ScriptedJudge) -> None:
    snippets = ("H is true.", "I is false.", "J is true.", "K is true.")
    assert values(judge, sample(snippets=snippets))["snippets covered"] == 3 / 4
    many = tuple(f"{n} is {str(n < 5).lower()}." for n in range(30))
    assert values(judge, sample(snippets=many))["snippets covered"] == 5 / MAX_SNIPPETS
    assert values(judge, sample(snippets=snippets, contexts=()))["snippets covered"] == 0
    assert "snippets covered" not in values(judge, sample())


def test_what_is_known_is_not_asked_again_and_the_rest_is_told(judge: ScriptedJudge) -> None:
    told: dict[str, Any] = {}
    known = {"1": {"faithfulness": 0.25, "judge failures": 0.0}}
    result = run(
        judge,
        sample("1"),
        sample("2"),
        known=known,
        keep=lambda s, found: told.update({s.id: found}),
    )
    assert result.scores.by_question()["1"] == known["1"]
    assert told == {"2": result.scores.by_question()["2"]}
    assert result.scores.values()["faithfulness"] == pytest.approx((0.25 + 2 / 3) / 2)


@pytest.mark.parametrize(
    ("fields", "asked_back", "noncommittal", "expected"),
    [
        (
            {
                "answer": "A is false. B is true.",
                "contexts": ("idle", "idle"),
                "reference": "C is true. D is true. E is false.",
            },
            ["same", "same", "same"],
            True,
            [0.5, 0.0, 0.0, 0.666667],
        ),
        (
            {
                "answer": "A is false. B is true. C is true. D is true.",
                "contexts": ("idle", "useful", "idle", "useful", "useful"),
                "reference": "E is true.",
            },
            ["against", "other", "near"],
            False,
            [0.75, -0.133333, 0.533333, 1.0],
        ),
    ],
)
def test_the_figures_are_those_of_the_ragas_library(
    fields: dict[str, Any],
    asked_back: list[str],
    noncommittal: bool,
    expected: list[float],
    judge: ScriptedJudge,
) -> None:
    """Expected is what ragas 0.3.1 computes from the same verdicts, questions and vectors."""
    judge.asked_back, judge.noncommittal = asked_back, noncommittal
    found = values(judge, sample(**fields))
    assert [found[name] for name in MEASURES] == pytest.approx(expected, abs=1e-6)


def test_what_a_sample_lacks_is_not_judged(judge: ScriptedJudge) -> None:
    found = values(judge, sample(answer=" "))
    assert found["answer relevancy"] == 0
    assert "faithfulness" not in found
    assert judge.users("noncommittal") == []
    judge.bodies.clear()
    found = values(judge, sample(contexts=()))
    assert [found[n] for n in ("faithfulness", "context precision", "context recall")] == [0, 0, 0]
    assert judge.users("statements") == []
    found = values(judge, sample(reference=""))
    assert found.keys() == {"faithfulness", "answer relevancy", "judge failures"}
    assert found["judge failures"] == 0


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(st.booleans(), min_size=1))
def test_context_precision_is_highest_with_the_useful_first(useful: list[bool]) -> None:
    best = average_precision(sorted(useful, reverse=True))
    assert best == (1 if any(useful) else 0)
    assert 0 <= average_precision(useful) <= best


def test_a_vector_of_nothing_is_like_nothing() -> None:
    assert mean_cosine(np.array([1.0, 0.0]), np.array([[0.0, 0.0], [1.0, 0.0]])) == 1 / 2
    assert mean_cosine(np.zeros(2), np.ones((3, 2))) == 0
