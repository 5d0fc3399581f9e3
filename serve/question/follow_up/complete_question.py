"""Complete a follow-up question with the previous questions of the conversation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from cluster.answers import Turn
from cluster.errors import LLMError
from serve.answer.names.name_shapes import names_by_shape
from serve.graph.watched_stages import WatchedStages
from serve.llm.chat_form import Message
from serve.llm.language_model import NO_MODEL, ChatModel
from serve.llm.watched_model import WatchedModel
from serve.question.follow_up.ask_model import NO_REPLY, ask_for_whole_question
from serve.question.guess_type import begins_as_question

CompletedBy = Literal["", "model", "rules"]
MAX_CHARACTERS = 2000
# Of the previous question. The reader only sees the beginning of a long question.
MAX_BEFORE = 400
# English words that refer to something named before.
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|this|these|those"
    r"|former|latter|else|other)\b",
    re.IGNORECASE,
)


async def complete_question(
    body: str, turns: Sequence[Turn], stages: WatchedStages
) -> tuple[str, CompletedBy]:
    """Return the question to search, and how it was completed ("" if it is complete itself).

    A question is completed if it does not begin like a question, refers back to something, or has
    no entity of the vocabulary and no word that is written like a name. The language model
    completes it if there is one; otherwise the last complete question is put before it.
    """
    if not turns or not await _rests_on_before(body, stages):
        return body, ""
    model = _OptionalModel(stages.stages.model("rewriter"))
    asked = WatchedModel(model, stages.watch, stages.model.limits)
    whole = await ask_for_whole_question(body, turns, asked)
    if model.is_absent:
        stages.watch.model_calls -= 1
    elif whole is not None:
        return whole, "model"
    before = await _last_whole_question(turns, stages)
    return f"{before[:MAX_BEFORE]} {body}".strip()[:MAX_CHARACTERS], "rules"


async def _rests_on_before(body: str, stages: WatchedStages) -> bool:
    text = body.strip()
    if not begins_as_question(text) or _POINTS_BACK.search(text):
        return True
    return not (names_by_shape(text) or await stages.entities(text))


async def _last_whole_question(turns: Sequence[Turn], stages: WatchedStages) -> str:
    """Return the last question that can be understood alone, or else the first one."""
    for turn in reversed(turns):
        question = " ".join(turn.question.split())
        if not await _rests_on_before(question, stages):
            return question
    return " ".join(turns[0].question.split())


class _OptionalModel:
    """A language model that may be absent, in which case it replies NO_REPLY."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.is_absent = False

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        """See `ChatModel.chat`."""
        try:
            return await self._model.chat(messages, **options)
        except LLMError as error:
            if NO_MODEL not in str(error):
                raise
            self.is_absent = True
            return NO_REPLY
