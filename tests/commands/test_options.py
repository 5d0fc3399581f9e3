"""Options of the commands that ask: presets, filters, earlier answers and the local graph."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest
from fastapi import FastAPI
from typer.testing import CliRunner

from cluster.errors import InputError
from cluster.settings.presets import load_system
from cluster.settings.settings import Settings, load_settings
from commands import ask as commands
from commands import options
from commands.cli import app
from commands.context import Context, make_context
from commands.options import Chosen, open_client, read_filters, read_turns
from serve.answer.ask_model import asks_model
from serve.client import local_client
from serve.client.local_client import ServedClient
from tests.serve.http_server import free_port, serving

BY_MODEL = ("llm.ideal_from=model", "llm.exact_from=model")


def test_language_model_is_loaded_only_if_used(subtests: pytest.Subtests) -> None:
    for system, answers, overrides, asked in [
        ("citeray", True, (), False),
        ("citeray", True, BY_MODEL, True),
        ("citeray", False, BY_MODEL, False),
        ("citeray-model", True, (), True),
        ("citeray-model", False, (), False),
        ("auto-model", False, (), True),
        ("huang", False, (), True),
    ]:
        with subtests.test(system=system, answers=answers, overrides=overrides):
            settings = load_settings(overrides=list(overrides))
            assert asks_model(settings, load_system(system), answers=answers) is asked


class Stated:
    """Local graph that answers immediately and prints when it stops."""

    def __init__(self, settings: object = None) -> None:
        pass

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"question": request["question"], "said": "Yes.", "degraded": []}

    search = answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        print("stopped")


def test_preset_without_model_starts_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(local_client, "LocalClient", Stated)
    here = (f"serve.port={free_port()}", f"index.path={tmp_path}")
    context = Context(None, here, False)
    assert isinstance(open_client(Chosen(context, "citeray"), answers=True), Stated)
    found = open_client(Chosen(context, "citeray-model"), answers=True)
    assert isinstance(found, ServedClient)


@pytest.mark.parametrize("command", ["ask", "search"])
def test_answer_is_printed_before_the_graph_stops(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(commands, "open_client", lambda *_, **__: Stated())
    done = CliRunner().invoke(app, [command, "Does metformin activate AMPK?", "--json"])
    answer, stopped = done.stdout.splitlines()
    assert (json.loads(answer)["said"], stopped) == ("Yes.", "stopped")


def test_error_budget_is_sent_if_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mapping[str, Any]] = []

    class Noting(Stated):
        def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
            asked.append(request)
            return super().answer(request)

    monkeypatch.setattr(commands, "open_client", lambda *_, **__: Noting())
    for option in ([], ["--max-wrong", "0.02"], ["--max-wrong", "1"]):
        done = CliRunner().invoke(app, ["ask", "Why?", *option, "--json"])
        assert done.exit_code == 0, done.output
    assert [request.get("max_wrong") for request in asked] == [None, 0.02, 1.0]


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """Record the settings of each local graph; no endpoint is available."""
    found: list[Settings] = []

    def started(settings: Settings) -> Stated:
        found.append(settings)
        return Stated()

    monkeypatch.setattr(local_client, "LocalClient", started)
    monkeypatch.setattr(options, "running_client", lambda _: pytest.fail("asks an endpoint"))
    return found


def test_preset_file_and_as_of_use_a_local_graph(graphs: list[Settings], tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("over: hybrid\nevidence: 4\n", encoding="utf-8")
    for option in (["--system", str(file)], ["--as-of", "pubmed26n1340.xml.gz"]):
        assert CliRunner().invoke(app, ["search", "Why?", *option, "--json"]).exit_code == 0
    assert graphs[0].serve.systems["mine"].evidence == 4
    assert graphs[1].serve.as_of == "pubmed26n1340.xml.gz"


@pytest.mark.slow
def test_language_model_option_uses_a_local_graph(graphs: list[Settings]) -> None:
    with serving(FastAPI()) as port:
        option = ["--llm", f"http://127.0.0.1:{port}/v1#m", "--json"]
        assert CliRunner().invoke(app, ["ask", "Why?", *option]).exit_code == 0
    assert (graphs[0].llm.kind, graphs[0].llm.model_id) == ("url", "m")


def test_progress_is_silent_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    for as_json, shown in ((False, "starting Ray\n"), (True, "")):
        make_context(None, None, as_json).progress.print("starting Ray")
        assert capsys.readouterr() == ("", shown)


def test_filter_options_become_request_filters() -> None:
    given = ["year_from=2020", "journals=BMJ", "journals=The Lancet", "humans=yes", "mesh=D006801"]
    assert read_filters(given, "2024-05-31") == {
        "until": "2024-05-31",
        "year_from": 2020,
        "journals": ["BMJ", "The Lancet"],
        "humans": True,
        "mesh": ["D006801"],
    }
    assert read_filters(None, None) == {}
    for text in ("year_from", "years=2020", "=2020", "until=2020"):
        said = rf"--filter {text}: give KEY=VALUE with one of year_from"
        with pytest.raises(InputError, match=said):
            read_filters([text], None)
    with pytest.raises(InputError, match="--until: 'soon' is not a day"):
        read_filters(None, "soon")
    with pytest.raises(InputError, match="--until: 'soon' is not a day"):
        options.check_options(make_context(None, None, False), None, until="soon")
    assert read_filters(["design=cohort"], None, ["randomised trial"]) == {
        "design": ["randomised trial", "cohort"]
    }


def test_reply_becomes_a_turn(tmp_path: Path) -> None:
    reply = {"question": {"body": "And in mice?"}, "ideal": [{"text": "It does."}]}
    plain, completed = tmp_path / "a.json", tmp_path / "b.json"
    plain.write_text(json.dumps({**reply, "understood": None}))
    completed.write_text(json.dumps({**reply, "understood": {"question": "Is X so in mice?"}}))
    assert read_turns([plain, completed]) == [
        {"question": "And in mice?", "answer": "It does."},
        {"question": "Is X so in mice?", "answer": "It does."},
    ]
    assert read_turns(None) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"question": 3}', '{"question": {}}'])
def test_invalid_reply_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"json: not an answer; .*`citeray ask QUESTION -o "):
        read_turns([file])
    with pytest.raises(InputError, match=r"missing\.json: cannot be read: No such file"):
        read_turns([tmp_path / "missing.json"])
