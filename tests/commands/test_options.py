"""When a command without an endpoint loads the language model, and when it prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest
import typer
from typer.testing import CliRunner

from cluster.errors import InputError
from cluster.settings.presets import load_system
from cluster.settings.settings import Settings, load_settings
from commands import ask as commands
from commands import options
from commands.answer import answer
from commands.cli import app
from commands.context import Context
from commands.options import Chosen, check_options, open_client, read_filters
from serve.answer.ask_model import asks_model
from serve.client import open_client as clients
from serve.client.open_client import ServedClient
from tests.serve.http_server import free_port

BY_MODEL = ("llm.ideal_from=model", "llm.exact_from=model")


@pytest.mark.parametrize(
    ("system", "answers", "overrides", "asked"),
    [
        ("citeray", True, (), False),
        ("bm25", True, (), False),
        ("citeray", True, BY_MODEL, True),
        ("citeray", False, BY_MODEL, False),
        ("citeray-model", True, (), True),
        ("citeray-model", False, (), False),
        ("sinai", True, (), True),
        ("auto-model", False, (), True),
        ("huang", False, (), True),
    ],
)
def test_only_a_preset_that_asks_the_model_needs_it(
    system: str, answers: bool, overrides: tuple[str, ...], asked: bool
) -> None:
    settings = load_settings(overrides=list(overrides))
    assert asks_model(settings, load_system(system), answers=answers) is asked


class Stated:
    """A graph in this process that answers at once, and says when it stops."""

    def __init__(self, settings: object = None) -> None:
        pass

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"question": request["question"], "said": "Yes."}

    search = answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        print("stopped")


def test_a_preset_that_asks_no_model_starts_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(clients, "LocalClient", Stated)
    here = (f"serve.port={free_port()}", f"index.path={tmp_path}")
    context = Context(None, here, False)
    assert isinstance(open_client(Chosen(context, "citeray"), answers=True), Stated)
    found = open_client(Chosen(context, "citeray-model"), answers=True)
    assert isinstance(found, ServedClient)


@pytest.mark.parametrize("command", ["ask", "search"])
def test_the_answer_is_printed_before_the_graph_stops(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(commands, "open_client", lambda *_, **__: Stated())
    done = CliRunner().invoke(app, [command, "Does metformin activate AMPK?", "--json"])
    answer, stopped = done.stdout.splitlines()
    assert (json.loads(answer)["said"], stopped) == ("Yes.", "stopped")


def test_the_error_budget_is_asked_for_where_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
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
    for option in (["--max-wrong", "1.5"], ["--max-wrong", "much"]):
        assert CliRunner().invoke(app, ["ask", "Why?", *option]).exit_code == 2


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of each graph that is started here; no endpoint may be asked."""
    found: list[Settings] = []

    def started(settings: Settings) -> Stated:
        found.append(settings)
        return Stated()

    monkeypatch.setattr(clients, "LocalClient", started)
    monkeypatch.setattr(options, "running_client", lambda _: pytest.fail("asks an endpoint"))
    return found


def search_with(*option: str) -> None:
    done = CliRunner().invoke(app, ["search", "Metformin?", *option, "--json"])
    assert done.exit_code == 0


def test_a_preset_of_a_file_is_asked_of_a_graph_here_under_its_name(
    graphs: list[Settings], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("over: hybrid\nevidence: 4\n", encoding="utf-8")
    search_with("--system", str(file))
    assert graphs[0].serve.systems["mine"].evidence == 4


def test_a_question_as_of_a_source_is_asked_of_a_graph_here(graphs: list[Settings]) -> None:
    search_with("--as-of", "pubmed26n1340.xml.gz")
    assert graphs[0].serve.as_of == "pubmed26n1340.xml.gz"


@pytest.mark.parametrize(
    ("text", "words"),
    [("over: hybrid\nevidens: 4", "unknown key evidens"), (None, "cannot be read")],
)
def test_a_file_that_is_no_preset_is_refused_by_its_name(
    tmp_path: Path, text: str | None, words: str
) -> None:
    file = tmp_path / "mine.yaml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words) as caught:
        check_options(Context(None, (), False), str(file))
    assert "mine.yaml" in str(caught.value)


def test_filters_of_the_command_line_become_those_of_a_request() -> None:
    given = ["year_from=2020", "journals=BMJ", "journals=The Lancet", "humans=yes", "mesh=D006801"]
    assert read_filters(given, "2024-05-31") == {
        "until": "2024-05-31",
        "year_from": 2020,
        "journals": ["BMJ", "The Lancet"],
        "humans": True,
        "mesh": ["D006801"],
    }
    assert read_filters(None, None) == {}
    assert read_filters(["design=cohort"], None, ["randomised trial"]) == {
        "design": ["randomised trial", "cohort"]
    }


@pytest.mark.parametrize("text", ["year_from", "years=2020", "=2020", "until=2020"])
def test_what_is_no_filter_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError, match=rf"--filter {text}: give KEY=VALUE with one of year_from"):
        read_filters([text], None)


def test_a_batch_has_its_last_day_from_the_settings() -> None:
    chosen = check_options(Context(None, (), False), "bm25", until="2024-05-31")
    assert chosen.context.settings.serve.until == "2024-05-31"
    assert chosen.here == "until 2024-05-31"
    with pytest.raises(InputError, match="'soon' is not a day"):
        _ = check_options(Context(None, (), False), "bm25", until="soon").context.settings


@pytest.mark.parametrize("file_format", ["synergy", "biogen-a", "biogen-b"])
def test_only_bioasqs_form_has_a_number_of_documents(file_format: str) -> None:
    arguments = ["q.json", "-o", "run.json", "--format", file_format, "--documents", "20"]
    app = typer.Typer()
    app.command()(answer)
    with pytest.raises(InputError, match="--documents: goes with --format bioasq"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
