"""Answers as OpenAI chat completions, and presets as OpenAI models.

The user's last message is the question; the earlier ones are the context of a follow-up. A stream
contains only the checked answer, one sentence per chunk; unchecked drafts are streamed only by
`/v1/answer`. The complete Answer is in the additional message field `citeray`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse, ServerSentEvent

from cluster.answers import Answer
from cluster.errors import InputError
from cluster.settings.presets import is_system, load_system, system_names
from serve.contracts.answer_events import Event, Finished
from serve.contracts.request import Request
from serve.contracts.stage_watch import StageLostError
from serve.http.answer_words import answer_pieces
from serve.http.event_stream import PING_S, as_failure, sent
from serve.http.openai.openai_errors import CHAT, MODELS, openai_error
from serve.http.openai.openai_reply import CHATTED, LISTED, NAMED
from serve.http.openai.openai_request import ChatRequest
from serve.http.service import Service, require_ready

CITATIONS = 10

# Tokens are not counted, as callers are not billed for them.
USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


class Completion:
    """Builder of one chat completion, as one object or as the chunks of a stream."""

    def __init__(self, model: str) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time())}
        self._head["model"] = model

    def whole(self, answer: Answer) -> dict[str, Any]:
        """Return the `chat.completion` object, with the Answer in the message's `citeray`."""
        message = {
            "role": "assistant",
            "content": "\n".join(answer_pieces(answer)),
            "citeray": asdict(answer),
        }
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": USAGE}

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        """Return one `chat.completion.chunk` object."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}

    def chunks(self, answer: Answer, *, usage: bool) -> list[dict[str, Any]]:
        """Return all chunks after the first, which contains only the role."""
        pieces = answer_pieces(answer)
        texts = [piece if n == 0 else f"\n{piece}" for n, piece in enumerate(pieces)]
        said = [self.chunk({"content": text}) for text in texts]
        last = self.chunk({"citeray": asdict(answer)}, "stop")
        counted = {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}
        return [*said, last, *([counted] if usage else [])]


async def _wire(
    completion: Completion, events: AsyncGenerator[Event, None], *, usage: bool
) -> AsyncIterator[ServerSentEvent]:
    yield sent(completion.chunk({"role": "assistant", "content": ""}))
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Finished):
                    for chunk in completion.chunks(event.answer, usage=usage):
                        yield sent(chunk)
    except Exception as error:
        status, message = as_failure(error)
        yield sent({"error": {"message": message, "type": "server_error", "code": status}})
    yield ServerSentEvent("[DONE]", sep="\n")


def _model_card(name: str) -> dict[str, Any]:
    card = {"id": name, "object": "model", "created": 0, "owned_by": "citeray"}
    return {**card, "description": load_system(name).about}


def add_openai_form(api: FastAPI, service: Service) -> None:
    """Add the routes to `api`."""

    @api.get(MODELS, responses=LISTED)
    async def models() -> dict[str, Any]:
        """Return the presets as a list of OpenAI models."""
        return {"object": "list", "data": [_model_card(name) for name in system_names()]}

    @api.get(MODELS + "/{name}", responses=NAMED)
    async def model(name: str) -> Any:
        """Return one preset as an OpenAI model."""
        return _model_card(name) if is_system(name) else _unknown(name)

    @api.post(CHAT, responses=CHATTED)
    async def complete(request: ChatRequest) -> Any:
        """Return a cited answer as a chat completion; `model` is the name of a preset."""
        if not is_system(request.model):
            return _unknown(request.model)
        try:
            question = request.question()
            require_ready(service)
        except InputError as error:
            return openai_error(400, str(error), param="messages")
        except StageLostError as error:
            return openai_error(503, str(error))
        system = load_system(request.model)
        asked = Request(question, system, CITATIONS, turns=request.turns())
        completion = Completion(request.model)
        if request.stream:
            usage = bool(request.stream_options and request.stream_options.include_usage)
            wire = _wire(completion, service.answer_events(asked), usage=usage)
            return EventSourceResponse(wire, ping=PING_S, sep="\n")
        try:
            return completion.whole(service.record(await service.answerer.answer(asked)))
        except Exception as error:
            return openai_error(*as_failure(error))

    def _unknown(name: str) -> JSONResponse:
        known = ", ".join(system_names())
        message = f"model {name[:100]!r} is unknown; there are: {known}"
        return openai_error(404, message, "model_not_found", "model")
