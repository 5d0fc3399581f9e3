"""OpenAI-compatible server on loopback with scripted replies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from serve.llm.language_model import OpenAIChatModel
from tests.serve.http_server import serving

# A text, an HTTP error status, a response, or a function from the user message to a text.
Reply = str | int | Response | Callable[[str], str]


class ChatEndpoint:
    """Sends `replies` in turn and repeats the last.

    `requests` are the requests for chat completions, and `asked` the bodies of all requests.
    """

    def __init__(self, *replies: Reply, streams: bool = True) -> None:
        self.replies = list(replies)
        self.streams = streams
        self.asked: list[dict[str, Any]] = []
        self.requests: list[Request] = []
        self.url = ""

    def complete(self, body: dict[str, Any]) -> Response:
        """Return a plain completion with the first reply, streamed if requested."""
        self.asked.append(body)
        choice = {"text": self.replies[0], "finish_reason": "stop"}
        if body.get("logprobs"):
            choice["logprobs"] = {"top_logprobs": [{" yes": -0.2, " no": -2.0}]}
        if body.get("stream"):
            pieces = f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n"
            return Response(pieces, media_type="text/event-stream")
        return JSONResponse({"choices": [choice]})

    def respond(self, body: dict[str, Any]) -> Response:
        self.asked.append(body)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, int):
            return JSONResponse({"error": "told to refuse"}, reply)
        if isinstance(reply, Response):
            return reply
        text = reply if isinstance(reply, str) else reply(body["messages"][-1]["content"])
        if self.streams and body.get("stream"):
            return StreamingResponse(in_pieces(text), media_type="text/event-stream")
        # A decision is read from the first token.
        text = "Yes" if body.get("logprobs") else text
        return JSONResponse({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})

    def users(self) -> list[str]:
        """Return the user message of each request."""
        return [body["messages"][-1]["content"] for body in self.asked]

    def model(self, *, completion: bool = False) -> OpenAIChatModel:
        return OpenAIChatModel(self.url, "m", timeout_s=10, retries=0, completion=completion)


def in_pieces(text: str) -> Iterator[str]:
    """Yield a chat completion as server-sent events, one word per chunk."""
    for word in re.findall(r"\S+\s*", text):
        yield f"data: {json.dumps({'choices': [{'delta': {'content': word}}]})}\n\n"
    yield 'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@contextmanager
def chat_endpoint(*replies: Reply, streams: bool = True) -> Iterator[ChatEndpoint]:
    """Run a `ChatEndpoint`; `streams` says whether it supports streaming."""
    endpoint = ChatEndpoint(*replies, streams=streams)
    app = FastAPI()

    @app.post("/v1/completions")
    async def continue_prompt(request: Request) -> Response:
        return endpoint.complete(await request.json())

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> Response:
        endpoint.requests.append(request)
        return endpoint.respond(await request.json())

    with serving(app) as port:
        endpoint.url = f"http://127.0.0.1:{port}/v1"
        yield endpoint
