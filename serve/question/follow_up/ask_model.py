"""Complete a follow-up question with a language model."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.answers import Turn
from cluster.errors import LLMError
from cluster.text.analysis import analyse
from serve.llm.prompts import quote
from serve.llm.watched_model import WatchedModel
from serve.question.rewrite_question import STAGE
from serve.search.search_prompts import search_prompt

BY_RULES = "follow-up question completed by rules"
# Reply that no model gives; it stands for a missing model.
NO_REPLY = "\0"
TOKENS = 128
MAX_CHARACTERS = 500
_SHOWN_TURNS = 5
_SHOWN_CHARACTERS = 500


async def ask_for_whole_question(
    body: str, turns: Sequence[Turn], model: WatchedModel
) -> str | None:
    """Return the question completed by the model.

    Returns None if the model is lost, which the watch records, and "" if no model is configured
    (the reply is NO_REPLY).
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

    def read(reply: str) -> str:
        return "" if reply == NO_REPLY else read_whole_question(reply, known)

    return await model.ask(STAGE, messages, read, BY_RULES, max_tokens=TOKENS)


def read_whole_question(reply: str, known: set[str]) -> str:
    """Return the question in a reply.

    `known` has the terms of the conversation. Raises LLMError if the reply is too long, or if less
    than half of its terms are in `known`.
    """
    lines = [line for line in reply.splitlines() if line.strip()]
    text = " ".join(lines[0].strip(" \"'*").removeprefix("Question:").split()) if lines else ""
    terms = set(analyse(text))
    if not terms or len(text) > MAX_CHARACTERS or 2 * len(terms & known) < len(terms):
        raise LLMError(f"llm: no completed question in the reply of {len(reply)} characters")
    return text
