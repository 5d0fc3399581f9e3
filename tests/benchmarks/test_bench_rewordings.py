from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bench_rewordings import (
    Reply,
    ask_facts,
    find_contradictions,
    load_corpus,
    print_replies,
    summarise,
)
from cluster.answers import Answer, ExactAnswer, Question, Verdict
from pipelines.sample.render_articles import render_articles
from tests.answers.suite import RewordedFact, Wording, load_reworded_facts
from tests.small_index import citation

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
    """Replies to the two wordings of one fact."""
    said = {SAFE.ask: answers["safe"], HARMFUL.ask: answers["harmful"]}
    return ask_facts([fact("a", SAFE, HARMFUL)], lambda body: said[body])


def test_contradictions_are_the_same_answer_to_opposite_wordings(
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


def test_the_table_counts_outcomes_by_answer_and_source() -> None:
    replies = ask(safe=answer("yes"), harmful=answer(None, "mixed"))
    assert summarise(replies).splitlines()[2:] == [
        "| all | 2 | 1 | 0 | 1 | 1 | 0 | 1 |",
        "| answer yes | 1 | 0 | 0 | 0 | 1 | 0 | 1 |",
        "| answer no | 1 | 1 | 0 | 1 | 0 | 0 | 0 |",
        "| sample | 2 | 1 | 0 | 1 | 1 | 0 | 1 |",
    ]


def test_corpus_holds_the_sample_facts_and_the_trials(tmp_path: Path) -> None:
    corpus = load_corpus(None)
    known = {one.pmid for one in corpus}
    assert len(known) == len(corpus)
    asked = {fact.source for fact in load_reworded_facts() if known.issuperset(fact.pmids)}
    assert asked == {"sample"}
    render_articles([citation(7, "A trial.")], tmp_path / "trials26n0001.xml")
    assert {one.pmid for one in load_corpus(tmp_path)} == {7, *known}
