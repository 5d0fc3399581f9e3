"""A question that rests on the ones before it, made to stand alone by a language model."""

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
# No model says this.
NO_REPLY = "\0"
TOKENS = 128
MAX_CHARACTERS = 500
_SHOWN_TURNS = 5
_SHOWN_CHARACTERS = 500


async def ask_for_whole_question(
    body: str, turns: Sequence[Turn], model: WatchedModel
) -> str | None:
    """The question as the model completes it; None where the model is lost, as the watch notes.

    "" where the reply is NO_REPLY, which stands for a model that there is not.
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
    """The question in a reply; raises LLMError for a reply that is not one about what was said.

    `known` are the terms of the conversation: at least half of a completed question's must be.
    """
    lines = [line for line in reply.splitlines() if line.strip()]
    text = " ".join(lines[0].strip(" \"'*").removeprefix("Question:").split()) if lines else ""
    terms = set(analyse(text))
    if not terms or len(text) > MAX_CHARACTERS or 2 * len(terms & known) < len(terms):
        raise LLMError(f"llm: no completed question in its {len(reply)} characters")
    return text
