"""JSON schemas that constrain a model's replies, and functions to parse them.

A reasoned reply is `{"chain_of_thought", "answer"}`, as in paper 000, section 3.3.1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cluster.errors import LLMError, brief
from cluster.text.sentences import sentence_spans

# Reply that the prompts of paper 000 request if nothing can be inferred.
NO_ANSWER = "no answer provided"
SUMMARY_CHARACTERS = 600
# Tokens for the keys and brackets of a reasoned reply.
FRAME_TOKENS = 20
# Characters per token: a low estimate for English, so that replies are not truncated.
CHARACTERS_A_TOKEN = 3

# Answers that a model may give to a yes/no question.
ModelDecision = Literal["yes", "no", "mixed", "not stated"]
DECISIONS: tuple[ModelDecision, ...] = ("yes", "no", "mixed", "not stated")
# Reply that CiteRay's own prompts request if no passage is about the question.
NOT_STATED = "not stated in the passages"

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
YESNO: Schema = {"type": "string", "enum": ["yes", "no"]}


@dataclass(frozen=True, slots=True)
class Reasoned:
    """Parsed reply: the reasoning and the answer."""

    reasoning: str
    answer: Any


def names_schema(limit: int, max_chars: int) -> Schema:
    """Return the schema of a list of 1 to `limit` strings of at most `max_chars` characters."""
    name = {"type": "string", "minLength": 1, "maxLength": max_chars}
    return {"type": "array", "items": name, "minItems": 1, "maxItems": limit}


def entities_schema(limit: int, max_chars: int) -> Schema:
    """Return the JSON schema of `{"answers": [...]}` with the list of `names_schema`."""
    return _object({"answers": names_schema(limit, max_chars)})


def reasoned_schema(answer: Schema, max_tokens: int) -> Schema:
    """Return the JSON schema of a reasoned reply of at most `max_tokens`.

    The reasoning precedes the answer, so that the answer can depend on it. The reasoning and an
    answer in prose are limited to half of the tokens each, because a truncated reply would not be
    valid JSON.
    """
    most = max(1, math.floor((max_tokens - FRAME_TOKENS) / 2 * CHARACTERS_A_TOKEN))
    text = TEXT | {"maxLength": most}
    return _object({"chain_of_thought": text, "answer": text if answer == TEXT else answer})


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def read_entities(text: str) -> list[str]:
    """Return the strings of `{"answers": [...]}`; raise LLMError for any other text."""
    return read_names(_field(_read_object(text), "answers"))


def read_names(value: Any) -> list[str]:
    """Return the strings of a list; raise LLMError if `value` is not a list."""
    if not isinstance(value, list):
        raise LLMError(f"llm: the answers are not a list: {brief(value)}")
    return [name for name in value if isinstance(name, str)]


def read_reasoned(text: str) -> Reasoned:
    """Return the parts of a reasoned reply; text around the JSON object is ignored.

    Raise LLMError if the reply has another form.
    """
    reply = _read_object(text[text.find("{") : text.rfind("}") + 1])
    reasoning = reply.get("chain_of_thought")
    return Reasoned(reasoning if isinstance(reasoning, str) else "", _field(reply, "answer"))


def read_weights(text: str, words: Sequence[str]) -> list[float]:
    """Return the probabilities of `words` from `ChatModel.chat`; raise LLMError for other text."""
    shares = [_field(_read_object(text), word) for word in words]
    if not all(isinstance(share, int | float) for share in shares):
        raise LLMError(f"llm: the shares of {', '.join(words)} are not numbers: {brief(text)}")
    return shares


def says_nothing(answer: str) -> bool:
    """Return True if the model says that the passages contain no answer."""
    return answer.strip().strip(".").casefold() in ("", NO_ANSWER, NOT_STATED)


def summarise_reasoning(reasoning: str, max_chars: int = SUMMARY_CHARACTERS) -> str:
    """Return the conclusion of `reasoning`: its last whole sentences within `max_chars`.

    If the last sentence alone is longer, return its last `max_chars` characters.
    """
    text = " ".join(reasoning.split())
    if len(text) <= max_chars:
        return text
    begins = [begin for begin, _ in sentence_spans(text) if len(text) - begin <= max_chars]
    return text[begins[0] :] if begins else text[-max_chars:]


def _read_object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise LLMError(f"llm: the reply is not the requested JSON: {brief(text)}")
    return value


def _field(reply: Mapping[str, Any], name: str) -> Any:
    if name not in reply:
        raise LLMError(f"llm: the reply has no field {name}: {brief(dict(reply))}")
    return reply[name]
