"""OpenAPI models of the OpenAI-compatible responses."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from cluster.answers import Answer
from serve.contracts.problem_forms import (
    KEY_STATUSES,
    MIDDLEWARE_STATUSES,
    OpenAIProblem,
    events,
    problems,
)


class Model(BaseModel):
    """Preset as an OpenAI model; `created` is always 0."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    description: str


class ModelList(BaseModel):
    """List of the available presets."""

    object: Literal["list"]
    data: list[Model]


class Message(BaseModel):
    """Assistant message; the additional field `citeray` is the response of `/v1/answer`."""

    role: Literal["assistant"]
    content: str
    citeray: Answer


class Choice(BaseModel):
    """The only choice of a completion."""

    index: int
    message: Message
    finish_reason: Literal["stop"]
    logprobs: None


class Usage(BaseModel):
    """Token usage; always zero, as tokens are not counted."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    """Completion; with `stream`, a stream of server-sent `chat.completion.chunk` events."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage


Responses = dict[int | str, dict[str, Any]]
ALWAYS: Responses = problems(*MIDDLEWARE_STATUSES, *KEY_STATUSES, form=OpenAIProblem)
LISTED: Responses = {200: {"model": ModelList}, **ALWAYS}
NAMED: Responses = {200: {"model": Model}, **ALWAYS, **problems(404, 422, form=OpenAIProblem)}
CHATTED: Responses = {
    200: {"model": ChatCompletion, "content": events()},
    **ALWAYS,
    **problems(400, 404, 422, 503, form=OpenAIProblem),
}
