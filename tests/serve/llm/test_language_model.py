"""The HTTP client against a local server with scripted failures."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cluster.errors import LLMError
from serve.llm.chat_form import Message, chat_request, read_reply
from serve.llm.language_model import OpenAIChatModel

MESSAGES: list[Message] = [{"role": "user", "content": "Is water wet?"}]


def completion(text: str, finish: str = "stop") -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}]}


class Endpoint(ThreadingHTTPServer):
    """Sends `replies`, (status, body, delay in seconds), in turn and repeats the last."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: list[tuple[int, bytes, float]] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.opened = 0
        self.closed = threading.Semaphore(0)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def play(self, status: int, body: Any, wait_s: float = 0.0) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.replies.append((status, raw, wait_s))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def handle(self) -> None:
        self.server.opened += 1
        super().handle()
        self.server.closed.release()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append({"path": self.path, **json.loads(body)})
        self.server.keys.append(self.headers.get("Authorization"))
        replies = self.server.replies
        status, raw, wait_s = replies.pop(0) if len(replies) > 1 else replies[0]
        time.sleep(wait_s)
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(endpoint: Endpoint, *, timeout_s: float = 10.0, **options: Any) -> str:
    model = OpenAIChatModel(
        endpoint.url, "m", api_key_env="TEST_LLM_KEY", timeout_s=timeout_s, backoff_s=0.01
    )
    return asyncio.run(model.chat(MESSAGES, max_tokens=8, temperature=0.0, **options))


def test_request_sends_the_key_of_the_environment(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.play(200, completion("Yes."))
    monkeypatch.delenv("TEST_LLM_KEY", raising=False)
    assert ask(endpoint) == "Yes."
    monkeypatch.setenv("TEST_LLM_KEY", "sesame")
    assert ask(endpoint) == "Yes."
    assert endpoint.keys == [None, "Bearer sesame"]
    assert endpoint.bodies[0]["path"] == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("status", "said", "times"),
    [(401, "TEST_LLM_KEY", 1), (429, "429", 4), (500, r"answered 500.*told", 1)],
)
def test_refusal_is_raised_after_limited_retries(
    endpoint: Endpoint, status: int, said: str, times: int
) -> None:
    endpoint.play(status, {"error": "told"})
    with pytest.raises(LLMError, match=said):
        ask(endpoint)
    assert len(endpoint.bodies) == times
    endpoint.replies.clear()
    for busy in (429, 503):
        endpoint.play(busy, {"error": "busy"})
    endpoint.play(200, completion("Yes."))
    assert ask(endpoint) == "Yes."


def test_malformed_completion_raises_llm_error(
    endpoint: Endpoint, subtests: pytest.Subtests
) -> None:
    for body in [b"<html>gateway</html>", b"[]", b'"text"', {"choices": []}, {"choices": [{}]}]:
        with subtests.test(body=body):
            endpoint.play(200, body)
            with pytest.raises(LLMError, match=r"with JSON|not (JSON|a chat)"):
                ask(endpoint)


def test_silent_server_times_out(endpoint: Endpoint) -> None:
    endpoint.play(200, completion("late"), wait_s=1.0)
    with pytest.raises(LLMError, match=r"did not answer in 0\.1 s"):
        ask(endpoint, timeout_s=0.1)


async def ask_times(model: OpenAIChatModel, times: int) -> None:
    for _ in range(times):
        await model.chat(MESSAGES, max_tokens=8, temperature=0.0)


@pytest.mark.parametrize(
    ("protocol", "calls", "opened"),
    [
        ("HTTP/1.1", (3,), 1),
        # Another event loop, and a server that closes each connection.
        ("HTTP/1.1", (1, 1), 2),
        ("HTTP/1.0", (2,), 2),
    ],
)
def test_calls_share_a_connection_until_the_loop_ends(
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    protocol: str,
    calls: tuple[int, ...],
    opened: int,
) -> None:
    monkeypatch.setattr(Handler, "protocol_version", protocol)
    endpoint.play(200, completion("Yes."))
    model = OpenAIChatModel(endpoint.url, "m", timeout_s=10)
    for times in calls:
        asyncio.run(ask_times(model, times))
    assert (len(endpoint.bodies), endpoint.opened) == (sum(calls), opened)
    assert all(endpoint.closed.acquire(timeout=60) for _ in range(opened))


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "localhost"])
def test_closed_port_or_invalid_url_is_unreachable(url: str) -> None:
    model = OpenAIChatModel(url, "m", timeout_s=5)
    with pytest.raises(LLMError, match="unreachable"):
        asyncio.run(model.chat(MESSAGES, max_tokens=8, temperature=0.0))


def test_truncated_reply_is_an_error_only_if_constrained(
    endpoint: Endpoint,
) -> None:
    endpoint.play(200, completion("Water is", finish="length"))
    assert ask(endpoint) == "Water is"
    with pytest.raises(LLMError, match="cut off"):
        ask(endpoint, json_schema={"type": "object"})
    with pytest.raises(LLMError, match="no text"):
        read_reply({"choices": [{"message": {"content": None}}]}, constrained=False)


def test_request_contains_the_constraint() -> None:
    request = partial(chat_request, "m", MESSAGES, max_tokens=2, temperature=0.0)
    assert request(choices=("yes", "no"))["structured_outputs"] == {"choice": ["yes", "no"]}
    assert request(json_schema={"type": "array"})["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": {"type": "array"}, "strict": True},
    }
    with pytest.raises(ValueError, match="not both"):
        request(choices=("a",), json_schema={})


def test_weigh_returns_probabilities_of_the_first_token(endpoint: Endpoint) -> None:
    shares = {"Yes": 0.5, " yes": 0.1, "No": 0.2, "Perhaps": 0.2}
    tokens = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
    reply = completion("Yes")
    reply["choices"][0]["logprobs"] = {"content": [{"token": "Yes", "top_logprobs": tokens}]}
    endpoint.play(200, reply)
    weighed = json.loads(ask(endpoint, weigh=("yes", "no")))
    assert weighed == pytest.approx({"yes": 0.75, "no": 0.25})
    body = endpoint.bodies[0]
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 20)


def test_weigh_without_probabilities_uses_the_reply(
    endpoint: Endpoint,
) -> None:
    endpoint.play(200, completion("No."))
    assert json.loads(ask(endpoint, weigh=("yes", "no"))) == {"yes": 0.0, "no": 1.0}
    endpoint.replies.clear()
    endpoint.play(200, completion("Perhaps"))
    with pytest.raises(LLMError, match="not one of yes, no: 'Perhaps'"):
        ask(endpoint, weigh=("yes", "no"))
