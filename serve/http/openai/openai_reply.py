"""The replies in OpenAI's form, as the API's OpenAPI document tells them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from cluster.answers import Answer
from serve.http.problem_forms import DOOR, KEYED, OpenAIProblem, events, problems


class Model(BaseModel):
    """A preset in the form of an OpenAI model; `created` is always 0."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    description: str


class ModelList(BaseModel):
    """The presets that questions can be asked with."""

    object: Literal["list"]
    data: list[Model]


class Message(BaseModel):
    """`citeray`, which is not OpenAI's, is what `/v1/answer` replies, with its `verdict`."""

    role: Literal["assistant"]
    content: str
    citeray: Answer


class Choice(BaseModel):
    """The one choice of a completion."""

    index: int
    message: Message
    finish_reason: Literal["stop"]
    logprobs: None


class Usage(BaseModel):
    """Always zeros: tokens are not counted."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    """With `stream` the reply is server-sent events, each a `chat.completion.chunk`."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage


Responses = dict[int | str, dict[str, Any]]
ALWAYS: Responses = problems(*DOOR, *KEYED, form=OpenAIProblem)
LISTED: Responses = {200: {"model": ModelList}, **ALWAYS}
NAMED: Responses = {200: {"model": Model}, **ALWAYS, **problems(404, 422, form=OpenAIProblem)}
CHATTED: Responses = {
    200: {"model": ChatCompletion, "content": events()},
    **ALWAYS,
    **problems(400, 404, 422, 503, form=OpenAIProblem),
}
