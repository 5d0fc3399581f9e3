from __future__ import annotations

import io
from dataclasses import asdict, replace

from rich.console import Console

from cluster.records import Answer, Question, Sentence
from serve.print_answer import print_answer
from tests.serve.answering import evidence

ANSWER = Answer(
    question=Question("q", "Does it help?", "summary"),
    system="citeray",
    ideal=(Sentence("It helps.", (1,), 0.9, (2,)),),
    exact=None,
    origin="generated",
    citations=(),
    evidence=tuple(evidence("It helped.", "It did not help.", "Cats sleep.")),
    snippets=(),
    entities=(),
    degraded=(),
    coverage="1/1",
    index_version="v000001",
    last_source="n1.xml",
    timings_ms={},
)


def shown(answer: Answer) -> list[str]:
    out = io.StringIO()
    print_answer(Console(file=out, width=200), asdict(answer))
    return out.getvalue().splitlines()


def test_contradicting_evidence_is_shown_beside_what_it_contradicts() -> None:
    lines = shown(ANSWER)
    assert "  It helps. [1] contradicted by [2]" in lines
    assert "    against: PMID 2 abstract 0-16: It did not help...." in lines


def test_uncontradicted_sentences_say_nothing_of_it() -> None:
    plain = replace(ANSWER, ideal=(Sentence("It helps.", (1,), 0.9),))
    assert not [line for line in shown(plain) if "contradicted" in line or "against" in line]


def test_a_supported_answer_is_shown_with_its_citations() -> None:
    answer = replace(ANSWER, supported=(Sentence("It helped.", (1,), 0.9),))
    assert "  because: It helped. [1]" in shown(answer)
