import asyncio
from pathlib import Path

import pytest

from cluster.errors import InputError, LLMError
from serve.search.pubmed.query_by_example import (
    UNWRITTEN,
    SolvedQuestion,
    most_similar,
    query_by_example,
    read_query,
    read_solved,
)
from tests.serve.scripted_model import Script, watched

SHIPPED = read_solved("pubmed-queries.yaml")
SOLVED = [
    SolvedQuestion(question="Which genes are mutated in ataxia?", query="Ataxia/genetics[mh]"),
    SolvedQuestion(question="Is warfarin safe in pregnancy?", query="Warfarin[mh] AND pregnan*"),
]


def test_shipped_queries_are_valid_and_most_similar_to_themselves() -> None:
    assert len(SHIPPED) >= 20
    for item in SHIPPED:
        assert read_query(item.query) == item.query
        assert most_similar(item.question, SHIPPED, 1) == [item]


def test_most_similar_returns_the_most_similar_question_first() -> None:
    assert most_similar("Is lithium safe in pregnancy?", SOLVED, 2)[0] == SOLVED[1]
    assert most_similar("Which genes cause gout?", SOLVED, 2)[0] == SOLVED[0]
    assert most_similar("Yoga?", SOLVED, 2) == []


def ask(said: Script, solved: list[SolvedQuestion]) -> tuple[str, list[str]]:
    model, watch = watched(said)
    written = asyncio.run(query_by_example("Is lithium safe in pregnancy?", solved, model))
    return written, watch.degraded


def test_query_by_example_shows_the_most_similar_example_last() -> None:
    said = Script("Query: Lithium[mh] AND Pregnancy[mh]\nThis finds it.")
    assert ask(said, [SOLVED[1], SOLVED[0]]) == ("Lithium[mh] AND Pregnancy[mh]", [])
    (prompt,) = said.users()
    assert prompt.index(SOLVED[0].query) < prompt.index(SOLVED[1].query)
    assert prompt.index(SOLVED[1].query) < prompt.index("lithium")


def test_invalid_query_is_reported_and_without_examples_none_is_written() -> None:
    written, degraded = ask(Script("Lithium[mh AND (Pregnancy[mh]"), SOLVED)
    assert written == ""
    assert any(UNWRITTEN in loss for loss in degraded)
    assert ask(Script(), []) == ("", [])


def test_read_query_rejects_unbalanced_or_long_queries(subtests: pytest.Subtests) -> None:
    for text in ["", "...", "a[mh", "(a", "a)", '"a', "a" * 301, "([a)]"]:
        with subtests.test(text=text), pytest.raises(LLMError, match="no PubMed query"):
            read_query(text)
    assert read_query('"ca(2+"[tiab]') == '"ca(2+"[tiab]'


def test_malformed_examples_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("questions: [{question: Why}]", encoding="utf-8")
    with pytest.raises(InputError, match=r"mine\.yaml: expected `questions`"):
        read_solved(str(path))
