from __future__ import annotations

import pytest

from benchmarks.bench_rewordings import (
    Reply,
    ask_facts,
    find_contradictions,
    print_replies,
    summarise,
)
from cluster.answers import Answer, ExactAnswer, Question, Verdict
from tests.answers.suite import RewordedFact, Wording

SAFE = Wording(ask="Is it safe?", answer="no")
HARMFUL = Wording(ask="Is it harmful?", answer="yes")


def fact(id: str, *wordings: Wording) -> RewordedFact:
    return RewordedFact(id=id, source="sample", pmids=(1,), stated="It harms.", wordings=wordings)


def answer(exact: ExactAnswer, verdict: Verdict = "answered") -> Answer:
    return Answer(
        question=Question("q", "Is it so?", "yesno"),
        system="citeray",
        citations=(),
        evidence=(),
        snippets=(),
        entities=(),
        degraded=(),
        coverage="full",
        index_version="v000001",
        last_source="",
        timings_ms={},
        verdict=verdict,
        confidence=0.5,
        ideal=(),
        exact=exact,
        origin="extractive",
    )


def ask(**answers: Answer) -> list[Reply]:
    """Return the replies to two opposite wordings of one fact."""
    said = {SAFE.ask: answers["safe"], HARMFUL.ask: answers["harmful"]}
    return ask_facts([fact("a", SAFE, HARMFUL)], lambda body: said[body])


def test_same_answer_to_opposite_wordings_is_a_contradiction(
    capsys: pytest.CaptureFixture[str],
) -> None:
    replies = ask(safe=answer("no"), harmful=answer("yes"))
    assert [reply.outcome for reply in replies] == ["right", "right"]
    assert find_contradictions(replies) == []
    withheld = answer(None, "not_enough_evidence")
    assert find_contradictions(ask(safe=answer("yes"), harmful=withheld)) == []
    assert find_contradictions(ask(safe=answer("yes"), harmful=answer("no"))) == []
    same = ask(safe=answer("yes"), harmful=answer("yes"))
    assert find_contradictions(same) == ["a"]
    print_replies(same)
    assert "1 wrong answers\n  a, right is no: Is it safe?" in capsys.readouterr().out


def test_table_counts_outcomes_by_answer_and_source() -> None:
    replies = ask(safe=answer("yes"), harmful=answer(None, "mixed"))
    assert summarise(replies).splitlines()[2:] == [
        "| all | 2 | 1 | 0 | 1 | 1 | 0 | 1 |",
        "| answer yes | 1 | 0 | 0 | 0 | 1 | 0 | 1 |",
        "| answer no | 1 | 1 | 0 | 1 | 0 | 0 | 0 |",
        "| sample | 2 | 1 | 0 | 1 | 1 | 0 | 1 |",
    ]
