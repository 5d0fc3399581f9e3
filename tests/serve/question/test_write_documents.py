"""Tests of writing pseudo-documents, by the module and its command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cluster.errors import InputError, LLMError
from commands.training.train import train
from serve.question import write_documents
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint

pytestmark = pytest.mark.ray


def questions_file(path: Path, *ids: str) -> Path:
    rows = [{"id": each, "body": f"What does {each} do?", "documents": 0} for each in ids]
    path.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    return path


def write(endpoint: ChatEndpoint, questions: Path, out: Path, *more: str, by: str = "m") -> None:
    words = ["pseudo-documents", str(questions), "--out", str(out), *more]
    for setting in ("llm.kind=url", f"llm.url={endpoint.url}", f"llm.model_id={by}"):
        words += ["--set", setting]
    done = CliRunner().invoke(train, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_documents_are_written_for_each_question(tmp_path: Path) -> None:
    out = tmp_path / "written.jsonl"
    with chat_endpoint("It helps.") as endpoint:
        write(endpoint, questions_file(tmp_path / "q.json", "a", "b"), out, "--documents", "2")
    assert rows(out) == [
        {"id": known, "text": "It helps.", "model": "m"} for known in ("a", "a", "b", "b")
    ]
    assert any("Write a paragraph that answers What does a do?" in u for u in endpoint.users())


@pytest.mark.parametrize("cut", ["", '\n{"id": "b", "te'], ids=["no line break", "half a line"])
def test_existing_documents_are_not_written_again(tmp_path: Path, cut: str) -> None:
    out = tmp_path / "written.jsonl"
    out.write_text('{"id": "a", "text": "Kept.", "model": "m"}' + cut, encoding="utf-8")
    with chat_endpoint("New.") as endpoint:
        write(endpoint, questions_file(tmp_path / "q.json", "a", "b"), out)
    assert [(row["id"], row["text"]) for row in rows(out)] == [("a", "Kept."), ("b", "New.")]
    assert len(endpoint.asked) == 1


def test_second_model_adds_its_own_documents(tmp_path: Path) -> None:
    out, questions = tmp_path / "written.jsonl", questions_file(tmp_path / "q.json", "a")
    with chat_endpoint("First.", "Second.") as endpoint:
        write(endpoint, questions, out)
        write(endpoint, questions, out, by="other")
        write(endpoint, questions, out)
    assert [(row["text"], row["model"]) for row in rows(out)] == [
        ("First.", "m"),
        ("Second.", "other"),
    ]


def test_lost_model_stops_and_keeps_written_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_documents, "AT_ONCE", 1)
    out, questions = tmp_path / "written.jsonl", questions_file(tmp_path / "q.json", *"abc")
    with chat_endpoint("Written.", 500) as endpoint:
        with pytest.raises(LLMError, match=r"for 2 of 3 questions.*run the same command again"):
            write(endpoint, questions, out)
        assert [row["id"] for row in rows(out)] == ["a"]
        assert len(endpoint.asked) == 2


def test_settings_without_a_model_url_are_rejected(tmp_path: Path) -> None:
    words = ["pseudo-documents", str(questions_file(tmp_path / "q.json", "a")), "--out", "o"]
    with pytest.raises(InputError, match=r"llm.kind none: .*--set llm.kind=url"):
        CliRunner().invoke(train, [*words, "--set", "llm.kind=none"], catch_exceptions=False)


def test_file_of_another_kind_is_rejected_and_unchanged(tmp_path: Path) -> None:
    questions = questions_file(tmp_path / "q.json", "a")
    before = questions.read_bytes()
    with (
        chat_endpoint("It helps.") as endpoint,
        pytest.raises(InputError, match="not a file of pseudo-documents"),
    ):
        write(endpoint, questions, questions)
    assert questions.read_bytes() == before
