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
from tests.answers.suite import RewordedFact, Wording, load_reworded_facts

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


def test_answers_of_opposite_polarity_agree_on_a_fact() -> None:
    replies = ask(safe=answer("no"), harmful=answer("yes"))
    assert [reply.outcome for reply in replies] == ["right", "right"]
    assert find_contradictions(replies) == []


def test_the_same_answer_to_opposite_wordings_is_a_contradiction() -> None:
    assert find_contradictions(ask(safe=answer("yes"), harmful=answer("yes"))) == ["a"]


def test_wrong_and_withheld_answers_alone_are_no_contradiction() -> None:
    withheld = answer(None, "not_enough_evidence")
    assert find_contradictions(ask(safe=answer("yes"), harmful=withheld)) == []
    assert find_contradictions(ask(safe=answer("yes"), harmful=answer("no"))) == []


def test_the_table_counts_outcomes_by_answer_and_source() -> None:
    replies = ask(safe=answer("yes"), harmful=answer(None, "mixed"))
    assert summarise(replies).splitlines()[2:] == [
        "| all | 2 | 1 | 0 | 1 | 1 | 0 | 1 |",
        "| answer yes | 1 | 0 | 0 | 0 | 1 | 0 | 1 |",
        "| answer no | 1 | 1 | 0 | 1 | 0 | 0 | 0 |",
        "| sample | 2 | 1 | 0 | 1 | 1 | 0 | 1 |",
    ]


def test_wrong_answers_and_contradictions_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_replies(ask(safe=answer("yes"), harmful=answer("yes")))
    shown = capsys.readouterr().out
    assert "1 of 1 facts have contradicting stated answers\n  a\n" in shown
    assert "1 wrong answers\n  a, right is no: Is it safe?" in shown


def test_the_corpus_without_trials_holds_the_sample_facts_alone() -> None:
    corpus = load_corpus(None)
    known = {citation.pmid for citation in corpus}
    assert len(known) == len(corpus) == 313
    asked = {fact.source for fact in load_reworded_facts() if known.issuperset(fact.pmids)}
    assert asked == {"sample"}


def test_trials_are_added_to_the_sample_corpus(tmp_path: Path) -> None:
    article = "<PubmedArticle><MedlineCitation><PMID Version='1'>7</PMID><Article>"
    article += "<ArticleTitle>A trial.</ArticleTitle></Article></MedlineCitation></PubmedArticle>"
    file = tmp_path / "trials26n0001.xml"
    file.write_text(f"<PubmedArticleSet>{article}</PubmedArticleSet>", encoding="utf-8")
    assert {citation.pmid for citation in load_corpus(tmp_path)} >= {7, 90000035}
