import asyncio
from dataclasses import replace

import pytest
from pydantic import ValidationError

from cluster.answers import Question, QuestionType, RankedCitation, SearchResult
from cluster.settings.presets import load_system
from cluster.settings.search_settings import LadderSettings, RungSettings
from cluster.settings.settings import load_settings
from cluster.settings.system_settings import SystemSettings
from serve.pipeline.cascade import Budget, Costs, is_confident, run_cascade
from tests.serve.scripted_model import Script
from tests.serve.service import CORPUS
from tests.serve.small_graph import SmallReranker, make_answerer, reply_of
from tests.small_index import citation

QUESTION = Question("q", "Does metformin activate AMPK?", "yesno")
EVERY = {"yesno": 0.5, "factoid": 0.5, "list": 0.5, "summary": 0.5}
LADDER = LadderSettings.model_validate(
    {
        "begin": "middle",
        "sure": EVERY,
        "rungs": [
            {"name": "low", "expects_ms": 10},
            {"name": "middle", "expects_ms": 100},
            {"name": "high", "expects_ms": 1000},
            {"name": "highest", "expects_ms": 5000},
        ],
    }
)


def found(last: float, kind: QuestionType = "yesno", count: int = 10) -> SearchResult:
    """Return a result whose best citation scores 1 and all others `last`."""
    scores = [1.0] + [last] * (count - 1)
    citations = tuple(RankedCitation(n, score) for n, score in enumerate(scores, 1))
    question = replace(QUESTION, type=kind)
    return SearchResult(question, "auto", citations, (), (), (), (), "2/2", "v1", "s", {})


def steps_run(
    budget_ms: int, last: float = 1.0, costs: Costs | None = None, reserve_ms: float = 0
) -> tuple[str, ...]:
    async def search(rung: RungSettings) -> SearchResult:
        return found(last)

    work = run_cascade(LADDER, Budget(budget_ms, reserve_ms), costs or Costs(), search)
    return asyncio.run(work)[1]


def test_uncertain_search_runs_as_many_steps_as_the_budget_allows(
    subtests: pytest.Subtests,
) -> None:
    for budget_ms, rungs in [
        (0, ("middle", "high", "highest")),
        (5, ("low",)),
        (50, ("low",)),
        (200, ("middle",)),
        (2000, ("middle", "high")),
        (60_000, ("middle", "high", "highest")),
    ]:
        with subtests.test(budget_ms=budget_ms, rungs=rungs):
            assert steps_run(budget_ms) == rungs


def test_cascade_stops_if_confident_or_out_of_budget() -> None:
    assert steps_run(0, last=0.4) == ("middle",)
    assert steps_run(2000, reserve_ms=1500) == ("middle",)


def test_measured_costs_replace_expected_costs() -> None:
    costs = Costs()
    for _ in range(20):
        costs.learn("high", 10_000)
    assert steps_run(2000, costs=costs) == ("middle",)
    for _ in range(60):
        costs.learn("high", 1)
    assert steps_run(2000, costs=costs) == ("middle", "high")


def test_is_confident_depends_on_the_type_and_needs_ten_citations() -> None:
    shares = {**EVERY, "list": 0.9}
    assert is_confident(found(0.4), shares)
    assert not is_confident(found(0.6), shares)
    assert not is_confident(found(0.4, "list"), shares)
    assert not is_confident(found(0.4, count=9), shares)


def test_invalid_ladder_settings_are_rejected() -> None:
    changes: dict[str, dict[str, object]] = {
        "begin does not name a step": {"begin": "nowhere"},
        "no share for factoid": {"sure": {"yesno": 0.5}},
        "the same name": {"rungs": [{"name": "a", "expects_ms": 1}] * 2, "begin": "a"},
    }
    for reason, change in changes.items():
        with pytest.raises(ValidationError, match=reason):
            LadderSettings.model_validate({**LADDER.model_dump(), **change})


MANY = [*CORPUS, *(citation(n, f"Metformin was given to group {n}.") for n in range(10, 30))]


def ask(system: SystemSettings, budget_ms: int = 0) -> SearchResult:
    question = replace(QUESTION, budget_ms=budget_ms)
    return reply_of(make_answerer(None, MANY).search, question, system, limit=3)


def never_sure(name: str) -> SystemSettings:
    system = load_system(name)
    assert system.ladder is not None
    ladder = system.ladder.model_copy(update={"sure": dict.fromkeys(EVERY, 2.0)})
    return system.model_copy(update={"ladder": ladder})


def test_reply_states_the_time_and_the_steps() -> None:
    for budget_ms, rungs in [(0, ("hybrid", "rerank")), (1, ("dense",))]:
        reply = ask(never_sure("auto"), budget_ms)
        assert reply.spent is not None
        assert (reply.spent.budget_ms, reply.spent.rungs) == (budget_ms, rungs)
        assert reply.spent.ms > 0
        assert (len(reply.citations), reply.degraded) == (3, ())


def help_search(prompt: str) -> str:
    """Reply with a ranking to numbered passages, otherwise with sub-questions."""
    ranks = "[1]" in prompt
    return "[2] > [1]" if ranks else "Query 1: What is AMPK?\nQuery 2: What is metformin?"


def test_cascade_reaches_the_language_model_if_uncertain() -> None:
    answerer = make_answerer(None, MANY, model=Script(help_search, repeats=True))
    rungs = ("hybrid", "rerank", "sub-questions", "listwise")
    for budget_ms, expected in [(1, ("bm25",)), (2000, rungs[:2]), (0, rungs)]:
        question = replace(QUESTION, budget_ms=budget_ms)
        reply = reply_of(answerer.search, question, never_sure("auto-model"), limit=3)
        assert reply.spent is not None
        assert (reply.spent.rungs, reply.degraded) == (expected, ())


def test_last_step_of_auto_equals_citeray() -> None:
    auto, citeray = load_system("auto"), load_system("citeray")
    assert auto.ladder is not None
    same = {"name": "", "about": "", "title": "", "group": "own", "order": 0}
    top = auto.at(auto.ladder.rungs[-1]).model_copy(update=same)
    assert top == citeray.model_copy(update=same)


def test_budget_skips_optional_steps_of_a_fixed_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(reranker: SmallReranker, question: str, texts: list[str]) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(SmallReranker, "score", slow)
    reply = ask(load_system("citeray"), budget_ms=1)
    assert reply.degraded == ("rerank: late, first-stage order kept",)
    assert reply.spent is not None
    assert reply.spent.rungs == ()
    assert reply.citations


def test_model_writes_only_if_the_budget_allows() -> None:
    text = "Metformin activates AMPK in the liver of diabetic mice."
    writer = Script('{"yes": 1.0, "no": 0.0}', text)
    answerer = make_answerer(None, CORPUS, serve=load_settings().serve, writer=writer)
    free = reply_of(answerer.answer, QUESTION, "citeray-model", limit=3)
    for _ in range(30):
        answerer.costs.learn("write citeray-model", 20_000)
    short = reply_of(answerer.answer, replace(QUESTION, budget_ms=1000), "citeray-model", limit=3)
    assert (free.origin, short.origin) == ("generated", "extractive")
    assert "llm: no time in the budget, extractive answer" in short.degraded
