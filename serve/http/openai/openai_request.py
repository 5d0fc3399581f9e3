"""What a request for a chat completion may say, and which of its words are the question."""

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

from cluster.answers import Question, Turn
from cluster.errors import InputError
from serve.http.request_forms import MAX_QUESTION_CHARACTERS, MAX_TURN_ANSWER, MAX_TURNS

MAX_MESSAGES = 200
MAX_MESSAGE_CHARACTERS = 100_000
PART = {
    "type": "object",
    "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
    "required": ["type", "text"],
}


def _text(content: Any) -> Any:
    """The text of a message, which may come in parts."""
    if not isinstance(content, list):
        return content
    if len(content) > MAX_MESSAGES:
        raise ValueError(f"has over {MAX_MESSAGES} parts")
    if not all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        raise ValueError("holds what is no text; images, audio and files are not read")
    texts = [part.get("text") for part in content]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("has a part of type text whose text is no string")
    return "\n".join(texts)


# The limit stands beside the type: only a limited string is searched for half characters.
Content = Annotated[
    str,
    Field(max_length=MAX_MESSAGE_CHARACTERS),
    BeforeValidator(_text),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": PART}]}),
]


class ChatMessage(BaseModel):
    """A turn. Content that is no text is refused."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Content


class StreamOptions(BaseModel):
    """`include_usage` adds a last chunk with the usage, which is all zeros."""

    include_usage: StrictBool = False


def only(*values: Any) -> AfterValidator:
    """Refuses what would ask for another kind of reply than the one there is."""

    def check(value: Any) -> Any:
        if value is not None and value not in values:
            raise ValueError("is not supported, a reply is one cited text; leave it out")
        return value

    return AfterValidator(check)


class ChatRequest(BaseModel):
    """Fields of OpenAI's that do not fit cited answers, such as `temperature`, change nothing."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {
                    "model": "citeray",
                    "messages": [{"role": "user", "content": "Does metformin activate AMPK?"}],
                }
            ]
        },
    )

    model: Annotated[str, Field(max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    stream: StrictBool = False
    stream_options: StreamOptions | None = None
    n: Annotated[Any, only(1)] = None
    tools: Annotated[Any, only([])] = None
    functions: Annotated[Any, only([])] = None
    audio: Annotated[Any, only()] = None
    modalities: Annotated[Any, only(["text"])] = None
    response_format: Annotated[Any, only({"type": "text"})] = None
    logprobs: Annotated[Any, only(False)] = None

    def question(self) -> Question:
        """Raises InputError where the last message is no question."""
        last = self.messages[-1]
        body = last.content.strip()
        if last.role != "user" or not body:
            raise InputError("messages: the last one must be the user's, and hold the question")
        if len(body) > MAX_QUESTION_CHARACTERS:
            raise InputError(
                f"messages: the question has {len(body):,} characters; at most "
                f"{MAX_QUESTION_CHARACTERS:,} can be asked"
            )
        return Question("", body)

    def turns(self) -> tuple[Turn, ...]:
        """The last turns before the question, each cut to what is read of it."""
        found: list[Turn] = []
        for message in self.messages[:-1]:
            text = message.content.strip()
            if message.role == "user" and text:
                found.append(Turn(text[:MAX_QUESTION_CHARACTERS]))
            elif message.role == "assistant" and found:
                found[-1] = Turn(found[-1].question, text[:MAX_TURN_ANSWER])
        return tuple(found[-MAX_TURNS:])
