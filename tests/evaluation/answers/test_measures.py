"""RAGAS measures compared with hand calculations and the ragas library."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.answers.judge_answers import (
    MAX_SNIPPETS,
    MEASURES,
)
from tests.evaluation.answers.judged_samples import (
    over_http,
    run,
    sample,
    values,
)
from tests.evaluation.scripted_judge import ScriptedJudge


def test_ragas_measures_match_hand_calculation(url: str) -> None:
    assert values(over_http(url), sample()) == pytest.approx(
        {
            # Statements A and C of A, B and C are supported.
            "faithfulness": 2 / 3,
            # Cosines with (1, 0): 1, 0.6 and 0.
            "answer relevancy": (1 + 0.6 + 0) / 3,
            # Useful passages at ranks 1 and 3: (1/1 + 2/3) / 2.
            "context precision": (1 + 2 / 3) / 2,
            # Statements D and G of D, E, F and G are supported.
            "context recall": 2 / 4,
            # Two of three passages are useful, as paper 002 counts them.
            "passages relevant": 2 / 3,
            "judge failures": 0,
        }
    )


def test_covered_share_of_gold_snippets(judge: ScriptedJudge) -> None:
    snippets = ("H is true.", "I is false.", "J is true.", "K is true.")
    assert values(judge, sample(snippets=snippets))["snippets covered"] == 3 / 4
    many = tuple(f"{n} is {str(n < 5).lower()}." for n in range(30))
    assert values(judge, sample(snippets=many))["snippets covered"] == 5 / MAX_SNIPPETS
    assert values(judge, sample(snippets=snippets, contexts=()))["snippets covered"] == 0
    assert "snippets covered" not in values(judge, sample())


def test_known_scores_are_not_requested_again(judge: ScriptedJudge) -> None:
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
def test_ragas_measures_match_the_library(
    fields: dict[str, Any],
    asked_back: list[str],
    noncommittal: bool,
    expected: list[float],
    judge: ScriptedJudge,
) -> None:
    """Expected values are those of ragas 0.3.1 for the same verdicts, questions and vectors."""
    judge.asked_back, judge.noncommittal = asked_back, noncommittal
    found = values(judge, sample(**fields))
    assert [found[name] for name in MEASURES] == pytest.approx(expected, abs=1e-6)


def test_measures_without_input_are_not_judged(judge: ScriptedJudge) -> None:
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
