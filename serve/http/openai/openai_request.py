"""Request models of chat completions, which yield the question and the earlier turns."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    WithJsonSchema,
)
from pydantic.config import JsonDict

from cluster.answers import Question, Turn
from cluster.errors import InputError
from serve.contracts.request_forms import MAX_QUESTION_CHARACTERS, MAX_TURN_ANSWER, MAX_TURNS

MAX_MESSAGES = 200
MAX_MESSAGE_CHARACTERS = 100_000
EXAMPLE: JsonDict = {
    "model": "citeray",
    "messages": [{"role": "user", "content": "Does metformin activate AMPK?"}],
}
PART = {
    "type": "object",
    "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
    "required": ["type", "text"],
}


def _text(content: Any) -> Any:
    """Join the text and refusal parts of a message; raise ValueError for other parts."""
    if not isinstance(content, list):
        return content
    if len(content) > MAX_MESSAGES:
        raise ValueError(f"has more than {MAX_MESSAGES} parts")
    kinds = [part.get("type") if isinstance(part, dict) else None for part in content]
    if not all(kind in ("text", "refusal") for kind in kinds):
        raise ValueError("has a part that is not text; images, audio and files are not read")
    texts = [part.get(kind) for part, kind in zip(content, kinds, strict=True)]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("has a part of type text whose text is not a string")
    return "\n".join(texts)


# The length limit also makes pydantic reject lone surrogates, which it otherwise accepts.
Content = Annotated[
    str,
    Field(max_length=MAX_MESSAGE_CHARACTERS),
    BeforeValidator(_text),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": PART}]}),
]


class ChatMessage(BaseModel):
    """Message of a conversation; only text content is accepted.

    Clients replay tool calls as assistant messages without content, and their results as messages
    of the roles tool or function. Neither is used.
    """

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content | None = None

    @property
    def text(self) -> str:
        """Return the content without surrounding white space, or "" if there is none."""
        return (self.content or "").strip()


class StreamOptions(BaseModel):
    """Options of a stream; `include_usage` adds a final chunk with the usage (all zeros)."""

    include_usage: StrictBool | None = None


def only(*values: Any) -> AfterValidator:
    """Return a validator that rejects values other than None and `values`.

    Other values would request a kind of response that is not supported.
    """

    def check(value: Any) -> Any:
        if value is not None and value not in values:
            raise ValueError("is not supported, as every response is one cited text; leave it out")
        return value

    return AfterValidator(check)


class ChatRequest(BaseModel):
    """Chat completion request. OpenAI fields such as `temperature` are ignored."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [EXAMPLE]})

    model: Annotated[str, Field(max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[Any, only(1)] = None
    tools: Annotated[Any, only([])] = None
    functions: Annotated[Any, only([])] = None
    audio: Annotated[Any, only()] = None
    modalities: Annotated[Any, only(["text"])] = None
    response_format: Annotated[Any, only({"type": "text"})] = None
    logprobs: Annotated[Any, only(False)] = None

    def question(self) -> Question:
        """Return the last message as the question; raise InputError if it is not a valid one."""
        last = self.messages[-1]
        body = last.text
        if last.role != "user" or not body:
            raise InputError("messages: the last one must be the user's, and contain the question")
        if len(body) > MAX_QUESTION_CHARACTERS:
            raise InputError(
                f"messages: the question has {len(body):,} characters; at most "
                f"{MAX_QUESTION_CHARACTERS:,} are allowed"
            )
        return Question("", body)

    def turns(self) -> tuple[Turn, ...]:
        """Return the last turns before the question, each text cut to its maximum length."""
        found: list[Turn] = []
        for message in self.messages[:-1]:
            text = message.text
            if message.role == "user" and text:
                found.append(Turn(text[:MAX_QUESTION_CHARACTERS]))
            elif message.role == "assistant" and text and found:
                found[-1] = Turn(found[-1].question, text[:MAX_TURN_ANSWER])
        return tuple(found[-MAX_TURNS:])
