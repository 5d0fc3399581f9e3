import asyncio
from pathlib import Path

import pytest

from cluster.errors import InputError, LLMError
from serve.graph.watch_stages import StageWatch
from serve.llm.watched_model import WatchedModel
from serve.search.pubmed.query_by_example import (
    UNWRITTEN,
    SolvedQuestion,
    likest,
    query_by_example,
    read_query,
    read_solved,
)
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint

SHIPPED = read_solved("pubmed-queries.yaml")
SOLVED = [
    SolvedQuestion(question="Which genes are mutated in ataxia?", query="Ataxia/genetics[mh]"),
    SolvedQuestion(question="Is warfarin safe in pregnancy?", query="Warfarin[mh] AND pregnan*"),
]


def test_the_shipped_queries_can_be_read_by_pubmed_and_lead_to_themselves() -> None:
    assert len(SHIPPED) >= 20
    for item in SHIPPED:
        assert read_query(item.query) == item.query
        assert likest(item.question, SHIPPED, 1) == [item]


def test_a_question_of_the_same_pattern_comes_first() -> None:
    assert likest("Is lithium safe in pregnancy?", SOLVED, 2)[0] == SOLVED[1]
    assert likest("Which genes cause gout?", SOLVED, 2)[0] == SOLVED[0]
    assert likest("Yoga?", SOLVED, 2) == []


def ask(endpoint: ChatEndpoint, solved: list[SolvedQuestion]) -> tuple[str, list[str]]:
    watch = StageWatch(30)
    model = WatchedModel(endpoint.model(), watch)
    written = asyncio.run(query_by_example("Is lithium safe in pregnancy?", solved, model))
    return written, watch.degraded


def test_the_model_adapts_the_query_that_stands_nearest() -> None:
    said = "Query: Lithium[mh] AND Pregnancy[mh]\nThis finds it."
    with chat_endpoint(said, "Lithium[mh AND (Pregnancy[mh]") as endpoint:
        assert ask(endpoint, []) == ("", [])
        assert not endpoint.asked
        assert ask(endpoint, [SOLVED[1], SOLVED[0]]) == ("Lithium[mh] AND Pregnancy[mh]", [])
        # A reply that is no query is told.
        written, degraded = ask(endpoint, SOLVED)
    assert written == ""
    assert any(UNWRITTEN in loss for loss in degraded)
    prompt = endpoint.users()[0]
    assert prompt.index(SOLVED[0].query) < prompt.index(SOLVED[1].query)
    assert prompt.index(SOLVED[1].query) < prompt.index("lithium")


def test_what_pubmed_would_read_otherwise_is_no_query(subtests: pytest.Subtests) -> None:
    for text in ["", "...", "a[mh", "(a", "a)", '"a', "a" * 301, "([a)]"]:
        with subtests.test(text=text), pytest.raises(LLMError, match="no PubMed query"):
            read_query(text)
    assert read_query('"ca(2+"[tiab]') == '"ca(2+"[tiab]'


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("questions: [{question: Why}]", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.yaml: expected `questions`"):
        read_solved(str(path))
