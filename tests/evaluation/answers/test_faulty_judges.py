"""Unreadable replies and unusable judges."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from cluster.errors import LLMError
from evaluation.answers.judge_answers import MEASURES, RELEVANT_SHARE
from tests.evaluation.answers.judged_samples import PROBE_CALLS, over_http, run, sample, values
from tests.evaluation.scripted_judge import ScriptedJudge
from tests.serve.http_server import free_port

# Measures that are lost if the reply to a task is malformed, by the first field of its schema.
LOST = {
    "verdicts": {"faithfulness", "context recall"},
    "statements": {"faithfulness", "context recall"},
    "noncommittal": {"answer relevancy"},
    "reason": {"context precision", RELEVANT_SHARE},
}


@pytest.mark.parametrize(
    ("task", "reply"),
    [
        ("verdicts", "Certainly! The first statement"),
        ("verdicts", '{"verdicts": []}'),
        ("verdicts", json.dumps({"verdicts": [{"reason": "", "supported": True}] * 5})),
        ("statements", '{"statements": []}'),
        ("statements", '{"statements": [" "]}'),
        ("statements", 500),
        ("noncommittal", '{"noncommittal": 0, "questions": ["a", "b", "c"]}'),
        ("noncommittal", '{"noncommittal": false, "questions": ["a"]}'),
        ("reason", '{"reason": "", "useful": "yes"}'),
        ("reason", '{"reason": "", "useful": true, "score": 1}'),
    ],
)
def test_malformed_judge_reply_counts_as_failure(
    task: str, reply: Any, judge: ScriptedJudge
) -> None:
    judge.replies[task] = [reply]
    scores = run(judge, sample()).scores
    found = scores.by_question()["1"]
    assert found.keys() == ({*MEASURES, RELEVANT_SHARE} - LOST[task]) | {"judge failures"}
    assert found["judge failures"] == len(LOST[task] - {RELEVANT_SHARE})
    assert all(math.isnan(scores.values()[name]) for name in LOST[task])


def test_judge_failures_are_counted_and_excluded_from_means(judge: ScriptedJudge) -> None:
    # The first sample's reply is malformed, and so is the reply to the retry.
    good = '{"noncommittal": false, "questions": ["same", "same", "near"]}'
    judge.replies["noncommittal"] = ["no", "no", good]
    found = run(judge, sample("1"), sample("2"), concurrent=1).scores
    assert found.values()["judge failures"] == 1
    assert found.values()["answer relevancy"] == pytest.approx((1 + 1 + 0.6) / 3)


def test_judge_retry_names_the_fault(judge: ScriptedJudge) -> None:
    judge.replies["reason"] = ['{"reason": "so"}']
    run(judge, sample(contexts=("c",)))
    again = next(body for body in judge.bodies if len(body["messages"]) == 4)
    assert again["messages"][2] == {"role": "assistant", "content": '{"reason": "so"}'}
    assert "useful: Field required" in again["messages"][3]["content"]


def test_endpoint_error_is_retried_unchanged(judge: ScriptedJudge) -> None:
    judge.replies["reason"] = [500, '{"reason": "", "useful": true}']
    assert values(judge, sample(contexts=("c",)))["context precision"] == 1
    assert all(len(body["messages"]) == 2 for body in judge.bodies)


def test_judge_below_80_percent_of_the_probe_is_weak(
    judge: ScriptedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong, weak in [(0, False), (2, False), (3, True), (12, True)]:
        judge.wrong = wrong
        result = run(judge)
        assert (result.probe_accuracy, result.weak) == ((12 - wrong) / 12, weak)
    # A judge that always gives the same reply is also weak.
    for always in (True, False):
        reply = {"verdicts": [{"reason": "", "supported": always}]}
        monkeypatch.setattr(judge, "probe_verdict", lambda user, reply=reply: reply)
        assert run(judge).probe_accuracy == 0.5


def test_unreadable_probe_reply_counts_as_wrong(
    judge: ScriptedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "probe_verdict", lambda user: {"verdict": "yes"})
    result = run(judge)
    assert (result.probe_accuracy, result.weak) == (0, True)
    assert result.calls == 2 * PROBE_CALLS


def test_unreachable_judge_raises_an_error() -> None:
    with pytest.raises(LLMError, match=r"answered none of the 12 probe cases: llm: .* is unr"):
        run(over_http(f"http://127.0.0.1:{free_port()}/v1"), sample())
