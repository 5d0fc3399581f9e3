from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cluster.answers import NOT_ENOUGH, Answer, Question
from cluster.settings.presets import load_system
from serve.answer.write_answer import WrittenAnswer
from serve.contracts.request import Request
from serve.pipeline import answer_question
from serve.pipeline.answer_parts import Clock, parts_of
from serve.pipeline.answer_question import QuestionAnswerer
from tests.serve.service import CORPUS, DISPUTED, dispute, unsure_of
from tests.serve.small_graph import Decide, as_written, calls_of, make_answerer

BODY = "Does metformin activate AMPK? What inhibits BCR-ABL?"


def request(body: str = BODY, **fields: object) -> Request:
    return Request(Question("q", body, **fields), load_system("citeray"), 10)  # type: ignore[arg-type]


def answerer_of(decide: Decide = as_written) -> QuestionAnswerer:
    return make_answerer(None, CORPUS, decide=decide)


def ask(decide: Decide = as_written, body: str = BODY) -> Answer:
    return asyncio.run(answerer_of(decide).answer(request(body)))


def unsure_of_names(written: WrittenAnswer) -> WrittenAnswer:
    return written if isinstance(written.exact, str) else unsure_of(written)


def test_each_part_has_its_verdict_and_its_citations() -> None:
    answer = ask()
    first, second = answer.parts
    assert (first.question.body, first.question.type) == ("Does metformin activate AMPK?", "yesno")
    assert (first.verdict, first.exact) == ("answered", "yes")
    assert second.question.body == "What inhibits BCR-ABL?"
    assert {pmid for s in second.ideal for pmid in s.pmids} == {3}
    assert answer.ideal == first.ideal + second.ideal
    assert (answer.verdict, answer.exact) == ("answered", None)
    assert answer.question.body == BODY
    cited = {pmid for sentence in answer.ideal for pmid in sentence.pmids}
    assert cited <= {item.passage.pmid for item in answer.evidence}


def test_part_without_evidence_says_so() -> None:
    answer = ask(unsure_of_names)
    assert [part.verdict for part in answer.parts] == ["answered", NOT_ENOUGH]
    assert answer.parts[1].ideal == ()
    assert answer.verdict == "answered"
    lacking = "There is not enough evidence for this part: What inhibits BCR-ABL?"
    assert lacking in answer.caveats


def test_question_without_any_answered_part_is_not_answered() -> None:
    answer = ask(unsure_of)
    assert answer.verdict == NOT_ENOUGH
    assert (answer.ideal, answer.exact, answer.caveats) == ((), None, ())
    assert answer.closest == tuple(s for part in answer.parts for s in part.closest)


def test_part_with_disagreeing_sources_is_named() -> None:
    answerer = make_answerer(None, DISPUTED, decide=dispute)
    answer = asyncio.run(answerer.answer(request("Is AMPK a kinase? Does metformin activate it?")))
    assert answer.verdict == "mixed"
    caveat = "The sources disagree about this part: Does metformin activate it?"
    assert caveat in answer.caveats


def test_part_that_refers_back_is_completed_by_the_part_before() -> None:
    body = "Does metformin activate AMPK? If so, in which organ?"
    second = ask(body=body).parts[1]
    assert second.understood is not None
    assert second.understood.question == body
    assert second.question.type == "factoid"


def test_part_without_own_evidence_uses_that_of_the_whole_question() -> None:
    answerer = answerer_of()
    context = asyncio.run(answerer.search(request())).evidence
    unknown = request("Is it a zzyzx?")
    unknown = replace(unknown, system=load_system("bm25"))
    alone = asyncio.run(answerer.answer(unknown))
    assert alone.evidence == ()
    among_others = asyncio.run(answerer.answer(unknown, context=context))
    assert {i.passage.id for i in among_others.evidence} == {i.passage.id for i in context}
    known = asyncio.run(answerer.answer(request("What inhibits BCR-ABL?"), context=context))
    assert {item.passage.pmid for item in known.evidence} == {3}


def test_single_question_is_searched_and_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answerer = answerer_of()
    calls = calls_of(answerer)
    answer = asyncio.run(answerer.answer(request("Does metformin activate AMPK?")))
    assert answer.parts == ()
    assert calls.count("writer write") == 1
    once = len(calls)
    calls.clear()
    monkeypatch.setattr(answer_question, "parts_of", lambda _: ())
    whole = asyncio.run(answerer.answer(request("Does metformin activate AMPK?")))
    assert len(calls) == once
    assert replace(answer, timings_ms={}, spent=None) == replace(whole, timings_ms={}, spent=None)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (BODY, {"type": "summary"}),
        (BODY, {"guess": True}),
        ("What is AMPK? Is it a kinase? AND 2020[dp]", {}),
    ],
)
def test_question_with_one_answer_by_request_is_not_split(
    body: str, fields: dict[str, object]
) -> None:
    assert parts_of(request(body, **fields)) == ()
    assert parts_of(request())


def test_budget_is_shared_by_the_remaining_steps() -> None:
    now = Clock(0.0, 60.0, 3000)
    assert replace(now, budget_ms=0).share_ms(3) == 0
    assert now.share_ms(3) == 1  # Begun long ago: nothing is left.
    answer = asyncio.run(answerer_of().answer(request(budget_ms=60_000)))
    assert answer.spent is not None
    assert answer.spent.budget_ms == 60_000
    first, second = (part.spent for part in answer.parts)
    assert first is not None
    assert second is not None
    assert 0 < first.budget_ms < second.budget_ms < 60_000
