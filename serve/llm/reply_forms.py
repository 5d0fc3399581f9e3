"""The JSON that a model must reply in: the schemas that constrain it, and what reads it.

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

# What paper 000's prompts say where nothing can be inferred.
NO_ANSWER = "no answer provided"
SUMMARY_CHARACTERS = 600
# What the names and brackets of a reasoned reply take.
FRAME_TOKENS = 20
# BioASQ's ideal answers have 4.5, 19 of 20 of them 2.8 or more.
CHARACTERS_A_TOKEN = 3

# What a model may decide of a yes/no question.
Decision = Literal["yes", "no", "mixed", "not stated"]
DECISIONS: tuple[Decision, ...] = ("yes", "no", "mixed", "not stated")
# What our own prompts ask for where no passage is about the question.
NOT_STATED = "not stated in the passages"

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
YESNO: Schema = {"type": "string", "enum": ["yes", "no"]}


@dataclass(frozen=True, slots=True)
class Reasoned:
    """A reply with the reasoning before it."""

    reasoning: str
    answer: Any


def names_schema(limit: int, max_chars: int) -> Schema:
    """A list of 1 to `limit` strings of at most `max_chars` characters."""
    name = {"type": "string", "minLength": 1, "maxLength": max_chars}
    return {"type": "array", "items": name, "minItems": 1, "maxItems": limit}


def entities_schema(limit: int, max_chars: int) -> Schema:
    """The JSON schema of `{"answers": [...]}`, the names as in `names_schema`."""
    return _object({"answers": names_schema(limit, max_chars)})


def reasoned_schema(answer: Schema, max_tokens: int) -> Schema:
    """The JSON schema of a reasoned reply of `max_tokens`.

    The reasoning comes first, or it would come late. It and an answer in prose are bounded to
    half of the tokens each: a reply that is cut off is no JSON, and all of it would be lost.
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
    """The strings of `{"answers": [...]}`. Raises LLMError if `text` is anything else."""
    return read_names(_field(_read_object(text), "answers"))


def read_names(value: Any) -> list[str]:
    """The strings of a list. Raises LLMError for what is no list."""
    if not isinstance(value, list):
        raise LLMError(f"llm: the answers are no list: {brief(value)}")
    return [name for name in value if isinstance(name, str)]


def read_reasoned(text: str) -> Reasoned:
    """The parts of a reasoned reply; what stands round the object is let pass.

    Raises LLMError for what has not the form.
    """
    reply = _read_object(text[text.find("{") : text.rfind("}") + 1])
    reasoning = reply.get("chain_of_thought")
    return Reasoned(reasoning if isinstance(reasoning, str) else "", _field(reply, "answer"))


def read_weights(text: str, words: Sequence[str]) -> list[float]:
    """The shares of `words`, as `ChatModel.chat` tells them. Raises LLMError for anything else."""
    shares = [_field(_read_object(text), word) for word in words]
    if not all(isinstance(share, int | float) for share in shares):
        raise LLMError(f"llm: the shares of {', '.join(words)} are no numbers: {brief(text)}")
    return shares


def says_nothing(answer: str) -> bool:
    """Whether the model says that the passages hold no answer."""
    return answer.strip().strip(".").casefold() in ("", NO_ANSWER, NOT_STATED)


def summarise_reasoning(reasoning: str, max_chars: int = SUMMARY_CHARACTERS) -> str:
    """The last sentences of `reasoning`, whole and within `max_chars`: where it arrived.

    The last one is there, cut at its begin, even if it alone is longer.
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
        raise LLMError(f"llm: the reply has not the asked form: {brief(text)}")
    return value


def _field(reply: Mapping[str, Any], name: str) -> Any:
    if name not in reply:
        raise LLMError(f"llm: the reply holds no {name}: {brief(dict(reply))}")
    return reply[name]
