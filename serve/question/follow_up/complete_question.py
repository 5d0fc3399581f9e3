"""A question of a conversation as one that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from cluster.answers import Turn
from cluster.errors import LLMError
from serve.graph.watched_stages import WatchedStages
from serve.llm.chat_form import Message
from serve.llm.language_model import NO_MODEL, ChatModel
from serve.llm.watched_model import WatchedModel
from serve.question.follow_up.ask_model import NO_REPLY, ask_for_whole_question
from serve.question.follow_up.carry_over import carry_over
from serve.question.follow_up.rest_on_before import rests_on_before

CompletedBy = Literal["", "model", "rules"]
MAX_CHARACTERS = 2000


async def complete_question(
    body: str, turns: Sequence[Turn], stages: WatchedStages
) -> tuple[str, CompletedBy]:
    """(the question, who completed it): `body` itself and "" where it stands alone.

    The language model completes it where there is one, rules where there is none or it is lost.
    """
    if not turns:
        return body, ""
    entities = await stages.entities(body)
    rests = rests_on_before(body, entities)
    if rests is None:
        return body, ""
    model = _IfAny(stages.stages.model("rewriter"))
    asked = WatchedModel(model, stages.watch, stages.model.limits)
    whole = await ask_for_whole_question(body, turns, asked)
    if model.absent:
        stages.watch.model_calls -= 1
    elif whole is not None:
        return whole, "model"
    before = await _last_whole_question(turns, stages)
    named = await stages.entities(before)
    return carry_over(body, entities, rests, before, named)[:MAX_CHARACTERS], "rules"


async def _last_whole_question(turns: Sequence[Turn], stages: WatchedStages) -> str:
    """The question of the last turn, which may itself rest on those before it."""
    before = ""
    for turn in turns:
        body = " ".join(turn.question.split())
        entities = await stages.entities(body)
        rests = rests_on_before(body, entities) if before else None
        if rests is None:
            before = body
        else:
            named = await stages.entities(before)
            before = carry_over(body, entities, rests, before, named)[:MAX_CHARACTERS]
    return before


class _IfAny:
    """A model that is not missed where there is none: NO_REPLY is its reply then."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.absent = False

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        """See `ChatModel.chat`."""
        try:
            return await self._model.chat(messages, **options)
        except LLMError as error:
            if NO_MODEL not in str(error):
                raise
            self.absent = True
            return NO_REPLY
