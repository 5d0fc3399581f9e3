"""`--llm URL#MODEL` makes any OpenAI-compatible server the writer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from cluster.errors import InputError
from commands import language_model
from commands.context import Context
from commands.language_model import hint_at_local_server, warn_of_lost_model, with_language_model
from tests.serve.http_server import free_port, serving


class Server:
    """A server with the `/v1/models` of Ollama."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.reply: Any = {"object": "list", "data": []}

    def offer(self, *names: str) -> None:
        self.reply = {"object": "list", "data": [{"id": name} for name in names]}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    app = FastAPI()

    @app.get("/v1/models")
    def models() -> Any:
        return served.reply

    with serving(app) as port:
        served = Server(port)
        yield served


def chosen(given: str) -> tuple[str, str, str, str, str]:
    llm = with_language_model(Context(None, (), False), given).settings.llm
    return llm.kind, llm.url, llm.model_id, llm.ideal_from, llm.exact_from


def test_named_model_is_not_looked_up(server: Server) -> None:
    # This server does not list its models below this address.
    url = f"{server.address}/other/v1"
    assert chosen(f"{url}#qwen2.5:1.5b") == ("url", url, "qwen2.5:1.5b", "model", "model")


def test_answers_without_the_model_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    context = Context(None, (), False)
    warn_of_lost_model(context, {"llm: failed, extractive exact answer": 1, "rerank: lost": 2})
    assert capsys.readouterr().err == ""
    losses = {"llm: failed, extractive answer": 2, "llm: nothing usable, extractive answer": 1}
    warn_of_lost_model(context, losses)
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "no usable answer, so 3 answers were taken from the evidence instead (llm: failed" in said
    )


def test_only_model_of_the_server_is_used(server: Server) -> None:
    server.offer('llama3.2: the 1B, by "Meta"')
    for address in (server.address, f"{server.address}/", f"{server.address}/v1/"):
        assert chosen(address)[1:3] == (f"{server.address}/v1", 'llama3.2: the 1B, by "Meta"')


def test_ambiguous_choice_of_a_model_is_refused(server: Server) -> None:
    server.offer("a", "b")
    with pytest.raises(InputError, match=r"offers 2 models; add one: #a, b"):
        chosen(server.address)
    server.offer()
    with pytest.raises(InputError, match=r"offers no model; load one there"):
        chosen(server.address)
    server.reply = ["a"]
    with pytest.raises(InputError, match=r"not a list of models; name one: #MODEL"):
        chosen(server.address)
    for path in ("", "/v1#llama3.2"):
        with pytest.raises(InputError, match=r"refused; is the server running\?"):
            chosen(f"http://127.0.0.1:{free_port()}{path}")
    with pytest.raises(InputError, match=r"--llm llama3.2: give an address such as http://"):
        chosen("llama3.2")


def test_local_server_is_named_unless_a_model_writes(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.offer("llama3.2", "other")
    port = int(server.address.rpartition(":")[2])
    monkeypatch.setattr(language_model, "LOCAL_SERVERS", {"None": free_port(), "Ollama": port})
    hint_at_local_server(Context(None, ("llm.ideal_from=model",), False))
    assert capsys.readouterr().err == ""
    hint_at_local_server(Context(None, (), False))
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("Ollama runs on this machine")
    assert said.endswith(f"--llm {server.address}/v1#llama3.2")
