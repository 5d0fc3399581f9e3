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
    supported_share,
)
from tests.evaluation.answers.judged_samples import (
    PROBE_CALLS,
    VECTORS,
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
        ({}, ["same", "near", "other"], False, [2 / 3, 0.533333, 0.833333, 0.5]),
        (
            {"answer": "A is true.", "contexts": ("idle", "useful"), "reference": "B is false."},
            ["near", "near", "near"],
            False,
            [1.0, 0.6, 0.5, 0.0],
        ),
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


def test_measures_are_means_over_samples(judge: ScriptedJudge) -> None:
    scores = run(judge, sample("1"), sample("2", answer="A is true.")).scores
    assert scores.ids == ("1", "2")
    assert scores.values()["faithfulness"] == pytest.approx((2 / 3 + 1) / 2)


def test_a_noncommittal_answer_is_not_relevant(judge: ScriptedJudge) -> None:
    judge.noncommittal = True
    assert values(judge, sample())["answer relevancy"] == 0


def test_an_empty_answer_is_not_relevant_and_states_nothing(judge: ScriptedJudge) -> None:
    found = values(judge, sample(answer=" "))
    assert found["answer relevancy"] == 0
    assert "faithfulness" not in found
    assert judge.users("noncommittal") == []


def test_without_contexts_nothing_is_supported(judge: ScriptedJudge) -> None:
    found = values(judge, sample(contexts=()))
    assert [found[n] for n in ("faithfulness", "context precision", "context recall")] == [0, 0, 0]
    assert judge.users("statements") == []


def test_without_a_reference_the_contexts_have_no_scores(judge: ScriptedJudge) -> None:
    found = values(judge, sample(reference=""))
    assert found.keys() == {"faithfulness", "answer relevancy", "judge failures"}
    assert found["judge failures"] == 0


def test_no_samples_give_an_empty_table(judge: ScriptedJudge) -> None:
    result = run(judge)
    assert result.scores.ids == ()
    assert result.calls == PROBE_CALLS


def test_average_precision_by_hand() -> None:
    # Hits at ranks 2, 3 and 5.
    useful = [False, True, True, False, True]
    assert average_precision(useful) == pytest.approx((1 / 2 + 2 / 3 + 3 / 5) / 3)
    assert average_precision([False, False]) == 0


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(st.booleans(), min_size=1))
def test_shares_and_precisions_are_between_0_and_1(verdicts: list[bool]) -> None:
    assert 0 <= average_precision(verdicts) <= 1
    assert 0 <= supported_share(verdicts) <= 1


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(st.booleans(), min_size=1))
def test_context_precision_is_highest_with_the_useful_first(useful: list[bool]) -> None:
    best = average_precision(sorted(useful, reverse=True))
    assert best == (1 if any(useful) else 0)
    assert average_precision(useful) <= best


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(st.booleans(), min_size=1), st.randoms(use_true_random=False))
def test_the_order_of_statements_is_nothing_to_their_share(
    verdicts: list[bool], random: Any
) -> None:
    shuffled = list(verdicts)
    random.shuffle(shuffled)
    assert supported_share(shuffled) == supported_share(verdicts)


def test_mean_cosine_by_hand() -> None:
    rows = np.array([VECTORS[name] for name in ("same", "near", "against")])
    assert mean_cosine(np.array([5.0, 0.0]), rows) == pytest.approx((1 + 0.6 - 1) / 3)


def test_a_vector_of_nothing_is_like_nothing() -> None:
    assert mean_cosine(np.array([1.0, 0.0]), np.array([[0.0, 0.0], [1.0, 0.0]])) == 1 / 2
    assert mean_cosine(np.zeros(2), np.ones((3, 2))) == 0
