"""Language model calls during a search; a failure is recorded as a degradation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, Unpack

from serve.contracts.stage_watch import StageWatch
from serve.llm.chat_form import ChatOptions, Message
from serve.llm.language_model import ChatModel

T = TypeVar("T")


class WatchedModel:
    """ChatModel with the deadlines and degradations of one question.

    `deadline_s` is the time limit of one call in seconds, and `evidence_characters` the maximum
    number of evidence characters in a prompt.
    """

    def __init__(
        self,
        model: ChatModel,
        watch: StageWatch,
        deadline_s: float = 30.0,
        evidence_characters: int = 2000,
    ) -> None:
        self._model = model
        self._watch = watch
        self.deadline_s = deadline_s
        self.evidence_characters = evidence_characters

    async def ask(
        self,
        stage: str,
        messages: Sequence[Message],
        read: Callable[[str], T],
        consequence: str,
        **options: Unpack[ChatOptions],
    ) -> T | None:
        """Return `read(reply)`, or None if the call fails or times out.

        A failure is recorded by StageWatch with its `consequence`. An LLMError from `read`, for an
        unusable reply, counts as a failure.
        """

        async def work() -> T:
            return read(await self._model.chat(messages, **options))

        self._watch.model_calls += 1
        return await self._watch.run(stage, work(), self.deadline_s, consequence, spare=True)
