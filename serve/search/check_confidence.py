"""Self-RAG, as in paper 002 (section 3.3, V6): search, draft, assess, search again.

The model drafts an answer from the evidence and rates its confidence as HIGH, MEDIUM or LOW. Below
HIGH it gives a follow-up query, for at most three rounds.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from cluster.answers import Evidence
from cluster.errors import LLMError, brief
from serve.contracts.watched_model import WatchedModel
from serve.llm.prompts import number_passages, quote, search_prompt

H = TypeVar("H")
Confidence = Literal["HIGH", "MEDIUM", "LOW"]

STAGE = "self-check"
UNCHECKED = "evidence not checked"
# Paper 002, section 3.4 and appendix A.
TEMPERATURE = 0.1
MAX_QUERY_CHARACTERS = 300

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "confidence": {"type": "string", "enum": list(get_args(Confidence))},
        "missing": {"type": "string", "maxLength": MAX_QUERY_CHARACTERS},
        "followup_query": {"type": "string", "maxLength": MAX_QUERY_CHARACTERS},
    },
    "required": ["confidence", "missing", "followup_query"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The model's confidence in an answer from the evidence, and what to search for next."""

    confidence: Confidence
    missing: str
    followup_query: str


async def judge_evidence(
    question: str, evidence: Sequence[Evidence], model: WatchedModel, tokens: int
) -> Judgement | None:
    """Let the model draft an answer and rate it, each in at most `tokens` tokens.

    Returns None if the model fails.
    """
    values = {
        "question": quote(question),
        "evidence": number_passages(evidence, model.evidence_characters),
    }
    draft = search_prompt("draft-answer").messages((), **values)
    answer = await model.ask(
        STAGE, draft, quote, UNCHECKED, max_tokens=tokens, temperature=TEMPERATURE
    )
    if answer is None:
        return None
    critique = search_prompt("confidence")
    return await model.ask(
        STAGE,
        critique.messages((), **values, answer=answer),
        read_judgement,
        UNCHECKED,
        max_tokens=tokens,
        temperature=TEMPERATURE,
        json_schema=_SCHEMA,
    )


def read_judgement(text: str) -> Judgement:
    """Parse the model's rating; raises LLMError if `text` is not the requested JSON."""
    try:
        said = json.loads(text)
        confidence = str(said["confidence"]).strip().upper()
        missing, query = str(said.get("missing") or ""), str(said.get("followup_query") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LLMError(f"llm: the confidence is not in the requested form: {brief(text)}") from None
    for level in get_args(Confidence):
        if confidence == level:
            return Judgement(level, missing, " ".join(query.split())[:MAX_QUERY_CHARACTERS])
    raise LLMError(f"llm: the confidence is {brief(confidence)}, not HIGH, MEDIUM or LOW")


async def search_until_sure(
    question: str,
    search: Callable[[str], Awaitable[Sequence[H]]],
    evidence_of: Callable[[Sequence[H]], Sequence[Evidence]],
    model: WatchedModel,
    rounds: int,
    tokens: int,
) -> list[H]:
    """Return the hits for the question and then for each follow-up query, in that order.

    Stops when the model's confidence is HIGH, the model fails or gives no new query, or after
    `rounds` searches, the last of which is not rated. `search` must return only new hits.
    """
    found = list(await search(question))
    asked = {question.casefold()}
    for _ in range(rounds - 1):
        judgement = await judge_evidence(question, evidence_of(found), model, tokens)
        if judgement is None or judgement.confidence == "HIGH":
            break
        query = judgement.followup_query
        if not query or query.casefold() in asked:
            break
        asked.add(query.casefold())
        found += await search(query)
    return found
