"""Requests and responses of language models in the format of OpenAI's chat completions.

A choice among words is constrained by vLLM's `structured_outputs`. All adapters use this module.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from typing import Any, Required, TypedDict, Unpack

from cluster.errors import LLMError, brief

# Number of top first tokens to request: the maximum of OpenAI's API.
TOP_WORDS = 20
ERROR_WORD = re.compile(r"[A-Za-z0-9_.-]{1,60}")


class Message(TypedDict):
    """One turn of a conversation; `role` is `system`, `user` or `assistant`."""

    role: str
    content: str


class ChatOptions(TypedDict, total=False):
    """Options of a call to a language model.

    The reply is one of `choices`, or JSON of `json_schema`, if given. The same `seed` gives the
    same reply to the same messages, as far as the model supports it. With `weigh` the model
    generates one token, and the text is JSON with the probability of each of these words:
    `{"yes": 0.9, "no": 0.1}`. `repetition_penalty` is a parameter of vLLM and TGI, not of OpenAI.
    """

    max_tokens: Required[int]
    temperature: float
    seed: int | None
    repetition_penalty: float | None
    choices: Sequence[str] | None
    json_schema: Mapping[str, Any] | None
    weigh: Sequence[str] | None


# Callback for each chunk of a streamed reply.
Say = Callable[[str], None]


def chat_request(
    model: str,
    messages: Sequence[Message],
    *,
    completion: bool = False,
    **options: Unpack[ChatOptions],
) -> dict[str, Any]:
    """Return the request body of a chat completion, or of a plain one with `completion`.

    A plain completion is for a model without a chat template. Options that are None are not sent.
    Raise ValueError if both `choices` and `json_schema` are given.
    """
    choices, json_schema = options.get("choices"), options.get("json_schema")
    if choices is not None and json_schema is not None:
        raise ValueError("chat_request: give choices or json_schema, not both")
    plain = {name: options.get(name) for name in ("seed", "repetition_penalty")}
    body: dict[str, Any] = {
        "model": model,
        "messages": [dict(message) for message in messages],
        "max_tokens": options["max_tokens"],
        "temperature": options.get("temperature", 0.0),
        **{name: value for name, value in plain.items() if value is not None},
    }
    if choices is not None:
        body["structured_outputs"] = {"choice": list(choices)}
    if options.get("weigh") is not None:
        body |= {"max_tokens": 1, "logprobs": True, "top_logprobs": TOP_WORDS}
    if json_schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": dict(json_schema), "strict": True},
        }
    return _as_completion(body) if completion else body


def _as_completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of the plain completion that is equivalent to the chat `body`.

    The texts of the conversation are joined without role markers.
    """
    asked = {name: value for name, value in body.items() if name not in ("messages", "logprobs")}
    if words := asked.pop("top_logprobs", None):
        asked["logprobs"] = words
    texts = (message["content"] for message in body["messages"])
    return asked | {"prompt": "\n\n".join(text for text in texts if text)}


def _as_chat_reply(reply: Any) -> Any:
    """Convert a plain completion or a chunk of one to the chat format; return others unchanged."""
    try:
        return {**reply, "choices": [_as_chat_choice(choice) for choice in reply["choices"]]}
    except (KeyError, IndexError, TypeError, AttributeError):
        return reply


def _as_chat_choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    said = {"content": choice["text"]}
    likely = ((choice.get("logprobs") or {}).get("top_logprobs") or [{}])[0] or {}
    words = [{"token": word, "logprob": value} for word, value in likely.items()]
    return {
        "message": said,
        "delta": said,
        "finish_reason": choice.get("finish_reason"),
        "logprobs": {"content": [{"top_logprobs": words}]} if words else None,
    }


def read_asked(reply: Any, options: Mapping[str, Any]) -> str:
    """Return the text of the reply, chat or plain, to a `chat_request` with these options.

    Raise LLMError like `read_reply`, and if none of the words in `weigh` is among the likely
    tokens.
    """
    reply = _as_chat_reply(reply)
    if options.get("weigh") is not None:
        return _read_shares(reply, options["weigh"])
    constrained = any(options.get(name) is not None for name in ("choices", "json_schema"))
    return read_reply(reply, constrained=constrained)


def read_reply(reply: Any, *, constrained: bool) -> str:
    """Return the text of a chat completion's first choice.

    Raise LLMError if the reply is not a chat completion, or if a constrained reply was cut off by
    the token limit, as it would not parse.
    """
    try:
        choice = reply["choices"][0]
        text = choice["message"]["content"]
        finish = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise LLMError(
            f"llm: the reply is not a chat completion ({error!r}): {brief(reply)}"
        ) from None
    if constrained and finish == "length":
        raise LLMError("llm: the constrained reply was cut off; raise its max_tokens")
    if not isinstance(text, str):
        raise LLMError(f"llm: the reply contains no text but a {type(text).__name__}")
    return text


def _read_shares(reply: Any, words: Sequence[str]) -> str:
    """Return JSON with the probability of each of `words` as the first token, normalised to 1.

    If the endpoint returns no probabilities, the word of the reply has probability 1. Raise
    LLMError if none of `words` is among the likely tokens.
    """
    text = read_reply(reply, constrained=False)
    logprobs = reply["choices"][0].get("logprobs") or {}
    tokens: list[dict[str, Any]] = [{"token": text, "logprob": 0.0}]
    if content := logprobs.get("content"):
        tokens = content[0]["top_logprobs"] or content[:1]
    found = dict.fromkeys(words, 0.0)
    for entry in tokens:
        word = entry["token"].strip().strip(".").casefold()
        if word in found:
            found[word] += math.exp(entry["logprob"])
    total = sum(found.values())
    if not total:
        raise LLMError(f"llm: the reply is not one of {', '.join(words)}: {brief(text)}")
    return json.dumps({word: share / total for word, share in found.items()})


def brief_error(reply: Any) -> str:
    """Return the type and code of an OpenAI error; its message may repeat the question."""
    error = reply.get("error") if isinstance(reply, dict) else None
    if not isinstance(error, dict):
        return brief(error if error is not None else reply)
    words = [str(error[name]) for name in ("type", "code") if error.get(name)]
    return ", ".join(word for word in words if ERROR_WORD.fullmatch(word)) or brief(
        error.get("message", error)
    )


async def read_pieces(lines: AsyncIterable[str], say: Say) -> dict[str, Any]:
    """Return the completion streamed as server-sent events, and call `say` with each chunk.

    Raise LLMError if the stream has an error or ends early.
    """
    said: list[str] = []
    finish = None
    async for line in lines:
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        try:
            piece = json.loads(data)
        except ValueError:
            raise LLMError(f"llm: a chunk of the reply is not JSON: {brief(data)}") from None
        if not isinstance(piece, dict) or "error" in piece:
            raise LLMError(f"llm: the stream failed: {brief_error(piece)}")
        for choice in _as_chat_reply(piece).get("choices") or []:
            finish = choice.get("finish_reason") or finish
            if text := (choice.get("delta") or {}).get("content"):
                said.append(text)
                say(text)
    if finish is None:
        raise LLMError("llm: the reply ended early")
    return {"choices": [{"message": {"content": "".join(said)}, "finish_reason": finish}]}
