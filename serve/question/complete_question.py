"""Complete a follow-up question with the previous questions of the conversation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from cluster.answers import Turn
from cluster.errors import LLMError
from cluster.text.analysis import analyse
from cluster.text.name_shapes import names_by_shape
from serve.contracts.stage_calls import StageCalls
from serve.llm.language_model import NoModelError
from serve.llm.prompts import quote, search_prompt
from serve.question.guess_type import begins_as_question
from serve.question.rewrite_question import STAGE
from serve.question.understand_question import ENTITIES

CompletedBy = Literal["", "model", "rules"]
MAX_CHARACTERS = 2000
# Maximum characters of the previous question; the reader model truncates long questions.
MAX_BEFORE = 400
BY_RULES = "follow-up question completed by rules"
TOKENS = 128
MAX_REPLY_CHARACTERS = 500
_SHOWN_TURNS = 5
_SHOWN_CHARACTERS = 500
# English words that refer to something named before.
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|this|these|those"
    r"|former|latter|else|other)\b",
    re.IGNORECASE,
)


async def complete_question(
    body: str, turns: Sequence[Turn], stages: StageCalls
) -> tuple[str, CompletedBy]:
    """Return the question to search, and how it was completed ("" if it is complete itself).

    A question is completed if it does not begin like a question, refers back to something, or has
    no entity of the vocabulary and no word that is written like a name. A language model completes
    it if the settings allow that (`IndexFacts.completes`). Otherwise the last self-contained
    question is put before it.
    """
    if not turns or not await _rests_on_before(body, stages):
        return body, ""
    by_model = stages.backend.facts.completes
    if by_model and (whole := await _ask_for_whole_question(body, turns, stages)):
        return whole, "model"
    before = await _last_whole_question(turns, stages)
    return f"{before[:MAX_BEFORE]} {body}".strip()[:MAX_CHARACTERS], "rules"


async def _rests_on_before(body: str, stages: StageCalls) -> bool:
    text = body.strip()
    if not begins_as_question(text) or _POINTS_BACK.search(text):
        return True
    if names_by_shape(text):
        return False
    return not await stages.call(ENTITIES, text)


async def _last_whole_question(turns: Sequence[Turn], stages: StageCalls) -> str:
    """Return the last question that can be understood alone, or else the first one."""
    for turn in reversed(turns):
        question = " ".join(turn.question.split())
        if not await _rests_on_before(question, stages):
            return question
    return " ".join(turns[0].question.split())


async def _ask_for_whole_question(
    body: str, turns: Sequence[Turn], stages: StageCalls
) -> str | None:
    """Return the question completed by the language model; "" if there is no model.

    Returns None if the model fails; the StageWatch records the failure.
    """
    said = [
        f"{who}: {quote(text[:_SHOWN_CHARACTERS])}"
        for turn in turns[-_SHOWN_TURNS:]
        for who, text in (("User", turn.question), ("Assistant", turn.answer))
        if text.strip()
    ]
    messages = search_prompt("follow-up").messages(
        turns_before="\n".join(said), question=quote(body)
    )
    known = {term for text in (body, *said) for term in analyse(text)}

    async def work() -> str:
        model = stages.chat_model("rewriter")
        try:
            reply = await model.chat(messages, max_tokens=TOKENS, temperature=0.0)
        except NoModelError:
            return ""
        return read_whole_question(reply, known)

    deadline = stages.model.deadline_s
    whole = await stages.watch.run(STAGE, work(), deadline, BY_RULES, spare=True)
    stages.watch.model_calls += whole != ""
    return whole


def read_whole_question(reply: str, known: set[str]) -> str:
    """Return the question in a reply.

    `known` has the terms of the conversation. Raises LLMError if the reply is too long, or if less
    than half of its terms are in `known`.
    """
    lines = [line for line in reply.splitlines() if line.strip()]
    text = " ".join(lines[0].strip(" \"'*").removeprefix("Question:").split()) if lines else ""
    terms = set(analyse(text))
    if not terms or len(text) > MAX_REPLY_CHARACTERS or 2 * len(terms & known) < len(terms):
        raise LLMError(f"llm: no completed question in the reply of {len(reply)} characters")
    return text
