"""An OpenAI-compatible endpoint on loopback that says what the test tells it to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from serve.graph.watch_stages import StageWatch
from serve.llm.language_model import OpenAIChatModel
from serve.llm.watched_model import ModelLimits, WatchedModel
from tests.serve.http_server import serving

# A text, a status to refuse with, or what makes the text of the user message.
Reply = str | int | Callable[[str], str]


class ChatEndpoint:
    """Plays `replies` in turn, the last one for ever; `asked` are the bodies that came."""

    def __init__(self, *replies: Reply, streams: bool = True) -> None:
        self.replies = list(replies)
        self.streams = streams
        self.asked: list[dict[str, Any]] = []
        self.url = ""

    def complete(self, body: dict[str, Any]) -> Response:
        """As a model without a chat form answers: the first reply, whole or in pieces."""
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
        text = reply if isinstance(reply, str) else reply(body["messages"][-1]["content"])
        if self.streams and body.get("stream"):
            return StreamingResponse(in_pieces(text), media_type="text/event-stream")
        # A decision is read off the first word.
        text = "Yes" if body.get("logprobs") else text
        return JSONResponse({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})

    def users(self) -> list[str]:
        """The user message of each request."""
        return [body["messages"][-1]["content"] for body in self.asked]

    def model(self, *, completion: bool = False) -> OpenAIChatModel:
        return OpenAIChatModel(self.url, "m", timeout_s=10, retries=0, completion=completion)


def in_pieces(text: str) -> Iterator[str]:
    """A streamed chat completion, a word a piece."""
    for word in re.findall(r"\S+\s*", text):
        yield f"data: {json.dumps({'choices': [{'delta': {'content': word}}]})}\n\n"
    yield 'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@contextmanager
def chat_endpoint(*replies: Reply, streams: bool = True) -> Iterator[ChatEndpoint]:
    """`streams` says whether it answers in pieces where it is asked to."""
    endpoint = ChatEndpoint(*replies, streams=streams)
    app = FastAPI()

    @app.post("/v1/completions")
    async def continue_prompt(request: Request) -> Response:
        return endpoint.complete(await request.json())

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> Response:
        return endpoint.respond(await request.json())

    with serving(app) as port:
        endpoint.url = f"http://127.0.0.1:{port}/v1"
        yield endpoint


def watched(
    endpoint: ChatEndpoint, limits: ModelLimits | None = None, watch: StageWatch | None = None
) -> tuple[WatchedModel, StageWatch]:
    """The endpoint as a question's search asks it, and where losses are noted."""
    watch = watch or StageWatch(30)
    return WatchedModel(endpoint.model(), watch, limits), watch
