"""Language model calls during a search; a failure is recorded as a degradation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from serve.contracts.stage_watch import StageWatch
from serve.llm.chat_form import Message
from serve.llm.language_model import ChatModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Limits of calls to the model.

    `deadline_s` is the time limit of one call in seconds, and `evidence_characters` the maximum
    number of evidence characters in a prompt.
    """

    deadline_s: float = 30.0
    evidence_characters: int = 2000


class WatchedModel:
    """ChatModel with the deadlines and degradations of one question."""

    def __init__(
        self, model: ChatModel, watch: StageWatch, limits: ModelLimits | None = None
    ) -> None:
        self._model = model
        self._watch = watch
        self.limits = limits or ModelLimits()

    async def ask(
        self,
        stage: str,
        messages: Sequence[Message],
        read: Callable[[str], T],
        consequence: str,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        seed: int | None = None,
        choices: Sequence[str] | None = None,
        json_schema: Mapping[str, Any] | None = None,
    ) -> T | None:
        """Return `read(reply)`, or None if the call fails or times out.

        A failure is recorded by StageWatch with its `consequence`. An LLMError from `read`, for an
        unusable reply, counts as a failure.
        """

        async def work() -> T:
            return read(
                await self._model.chat(
                    messages,
                    max_tokens=max_tokens,
                    temperature=temperature,
                    seed=seed,
                    choices=choices,
                    json_schema=json_schema,
                )
            )

        deadline = self.limits.deadline_s
        self._watch.model_calls += 1
        return await self._watch.run(stage, work(), deadline, consequence, spare=True)
