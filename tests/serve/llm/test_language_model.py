from __future__ import annotations

import asyncio
import json
import math
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from fastapi import Response
from fastapi.responses import JSONResponse

from cluster.errors import LLMError
from cluster.http_clients import open_async_client
from serve.llm.chat_form import Message, chat_request, read_reply
from serve.llm.language_model import OpenAIChatModel
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint

MESSAGES: list[Message] = [{"role": "user", "content": "Is water wet?"}]


def completion(text: str, finish: str = "stop", **more: Any) -> JSONResponse:
    choice = {"message": {"content": text}, "finish_reason": finish, **more}
    return JSONResponse({"choices": [choice]})


@pytest.fixture(scope="module")
def serving() -> Iterator[ChatEndpoint]:
    with chat_endpoint() as serving:
        yield serving


@pytest.fixture
def endpoint(serving: ChatEndpoint) -> ChatEndpoint:
    serving.asked.clear()
    serving.requests.clear()
    return serving


def ask(url: str, *, timeout_s: float = 10.0, **options: Any) -> str:
    model = OpenAIChatModel(
        url, "m", api_key_env="TEST_LLM_KEY", timeout_s=timeout_s, backoff_s=0.01
    )
    return asyncio.run(model.chat(MESSAGES, max_tokens=8, temperature=0.0, **options))


def test_request_sends_the_key_of_the_environment(
    endpoint: ChatEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.replies[:] = ["Yes."]
    monkeypatch.delenv("TEST_LLM_KEY", raising=False)
    assert ask(endpoint.url) == "Yes."
    monkeypatch.setenv("TEST_LLM_KEY", "sesame")
    assert ask(endpoint.url) == "Yes."
    keys = [request.headers.get("Authorization") for request in endpoint.requests]
    assert keys == [None, "Bearer sesame"]


@pytest.mark.parametrize(
    ("status", "said", "times"),
    [(401, "TEST_LLM_KEY", 1), (429, "429", 4), (500, r"answered 500.*told", 1)],
)
def test_refusal_is_raised_after_limited_retries(
    endpoint: ChatEndpoint, status: int, said: str, times: int
) -> None:
    endpoint.replies[:] = [status]
    with pytest.raises(LLMError, match=said):
        ask(endpoint.url)
    assert len(endpoint.asked) == times


def test_busy_endpoint_is_asked_again(endpoint: ChatEndpoint) -> None:
    endpoint.replies[:] = [429, 503, "Yes."]
    assert ask(endpoint.url) == "Yes."


def test_malformed_completion_raises_llm_error(
    endpoint: ChatEndpoint, subtests: pytest.Subtests
) -> None:
    for body in ["<html>gateway</html>", "[]", '"text"', '{"choices": []}', '{"choices": [{}]}']:
        with subtests.test(body=body):
            endpoint.replies[:] = [Response(body)]
            with pytest.raises(LLMError, match=r"with JSON|not (JSON|a chat)"):
                ask(endpoint.url)


def test_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(LLMError, match=r"did not answer in 0\.1 s"):
            ask(url, timeout_s=0.1)


async def ask_times(model: OpenAIChatModel, times: int) -> None:
    for _ in range(times):
        await model.chat(MESSAGES, max_tokens=8, temperature=0.0)


@pytest.mark.parametrize(
    ("headers", "calls", "opened"),
    [
        ({}, (3,), 1),
        # Another event loop, and a server that closes each connection.
        ({}, (1, 1), 2),
        ({"Connection": "close"}, (2,), 2),
    ],
)
def test_calls_share_a_connection_until_the_loop_ends(
    endpoint: ChatEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
    calls: tuple[int, ...],
    opened: int,
) -> None:
    clients: list[httpx.AsyncClient] = []

    def open_client(**options: Any) -> httpx.AsyncClient:
        clients.append(open_async_client(**options))
        return clients[-1]

    monkeypatch.setattr("serve.llm.language_model.open_async_client", open_client)
    reply = completion("Yes.")
    reply.headers.update(headers)
    endpoint.replies[:] = [reply]
    model = OpenAIChatModel(endpoint.url, "m", timeout_s=10)
    for times in calls:
        asyncio.run(ask_times(model, times))
    assert len(endpoint.asked) == sum(calls)
    assert len({request.client for request in endpoint.requests}) == opened
    assert [client.is_closed for client in clients] == [True] * len(calls)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "localhost"])
def test_closed_port_or_invalid_url_is_unreachable(url: str) -> None:
    with pytest.raises(LLMError, match="unreachable"):
        ask(url)


def test_truncated_reply_is_an_error_only_if_constrained(endpoint: ChatEndpoint) -> None:
    endpoint.replies[:] = [completion("Water is", finish="length")]
    assert ask(endpoint.url) == "Water is"
    with pytest.raises(LLMError, match="cut off"):
        ask(endpoint.url, json_schema={"type": "object"})
    with pytest.raises(LLMError, match="no text"):
        read_reply({"choices": [{"message": {"content": None}}]}, constrained=False)


def test_request_contains_the_constraint_and_the_penalty() -> None:
    request = partial(chat_request, "m", MESSAGES, max_tokens=2, temperature=0.0)
    assert request(choices=("yes", "no"))["structured_outputs"] == {"choice": ["yes", "no"]}
    assert request(json_schema={"type": "array"})["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": {"type": "array"}, "strict": True},
    }
    assert request(repetition_penalty=1.15)["repetition_penalty"] == 1.15
    assert "repetition_penalty" not in request()
    with pytest.raises(ValueError, match="not both"):
        request(choices=("a",), json_schema={})


def test_weigh_returns_probabilities_of_the_first_token(endpoint: ChatEndpoint) -> None:
    shares = {"Yes": 0.5, " yes": 0.1, "No": 0.2, "Perhaps": 0.2}
    tokens = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
    logprobs = {"content": [{"token": "Yes", "top_logprobs": tokens}]}
    endpoint.replies[:] = [completion("Yes", logprobs=logprobs)]
    weighed = json.loads(ask(endpoint.url, weigh=("yes", "no")))
    assert weighed == pytest.approx({"yes": 0.75, "no": 0.25})
    body = endpoint.asked[0]
    assert (body["max_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 20)


def test_weigh_without_probabilities_uses_the_reply(endpoint: ChatEndpoint) -> None:
    endpoint.replies[:] = [completion("No.")]
    assert json.loads(ask(endpoint.url, weigh=("yes", "no"))) == {"yes": 0.0, "no": 1.0}
    endpoint.replies[:] = [completion("Perhaps")]
    with pytest.raises(LLMError, match="not one of yes, no: 'Perhaps'"):
        ask(endpoint.url, weigh=("yes", "no"))
