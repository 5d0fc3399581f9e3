"""Replies that cannot be read, and judges that cannot judge."""

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

# The measures that are lost when the reply to a task, by its schema's first field, is malformed.
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
def test_malformed_reply_is_no_score_but_a_failure(
    task: str, reply: Any, judge: ScriptedJudge
) -> None:
    judge.replies[task] = [reply]
    scores = run(judge, sample()).scores
    found = scores.by_question()["1"]
    assert found.keys() == ({*MEASURES, RELEVANT_SHARE} - LOST[task]) | {"judge failures"}
    assert found["judge failures"] == len(LOST[task] - {RELEVANT_SHARE})
    assert all(math.isnan(scores.values()[name]) for name in LOST[task])


def test_failures_are_added_up_and_left_out_of_the_means(judge: ScriptedJudge) -> None:
    # The first sample's reply is malformed, and so is what comes when it is asked again.
    good = '{"noncommittal": false, "questions": ["same", "same", "near"]}'
    judge.replies["noncommittal"] = ["no", "no", good]
    found = run(judge, sample("1"), sample("2"), concurrent=1).scores
    assert found.values()["judge failures"] == 1
    assert found.values()["answer relevancy"] == pytest.approx((1 + 1 + 0.6) / 3)


def test_the_judge_hears_what_was_wrong(judge: ScriptedJudge) -> None:
    judge.replies["reason"] = ['{"reason": "so"}']
    run(judge, sample(contexts=("c",)))
    again = next(body for body in judge.bodies if len(body["messages"]) == 4)
    assert again["messages"][2] == {"role": "assistant", "content": '{"reason": "so"}'}
    assert "useful: Field required" in again["messages"][3]["content"]


def test_an_error_of_the_endpoint_is_asked_again_as_it_was(judge: ScriptedJudge) -> None:
    judge.replies["reason"] = [500, '{"reason": "", "useful": true}']
    assert values(judge, sample(contexts=("c",)))["context precision"] == 1
    assert all(len(body["messages"]) == 2 for body in judge.bodies)


def test_judge_below_four_fifths_of_the_probe_is_weak(
    judge: ScriptedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong, weak in [(0, False), (2, False), (3, True), (12, True)]:
        judge.wrong = wrong
        result = run(judge)
        assert (result.probe_accuracy, result.weak) == ((12 - wrong) / 12, weak)
    # So is one that always says the same.
    for always in (True, False):
        reply = {"verdicts": [{"reason": "", "supported": always}]}
        monkeypatch.setattr(judge, "probe_verdict", lambda user, reply=reply: reply)
        assert run(judge).probe_accuracy == 0.5


def test_a_probe_reply_that_cannot_be_read_counts_as_wrong(
    judge: ScriptedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "probe_verdict", lambda user: {"verdict": "yes"})
    result = run(judge)
    assert (result.probe_accuracy, result.weak) == (0, True)
    assert result.calls == 2 * PROBE_CALLS


def test_a_judge_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LLMError, match=r"answered none of the 12 probe cases: llm: .* is unr"):
        run(over_http(f"http://127.0.0.1:{free_port()}/v1"), sample())
