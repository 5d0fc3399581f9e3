"""The language model as a question's search asks it: what fails is a stated loss, no error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from serve.graph.watch_stages import StageWatch
from serve.llm.chat_form import Message
from serve.llm.language_model import ChatModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """`deadline_s` bounds one call, in seconds; `evidence_characters` what a prompt quotes."""

    deadline_s: float = 30.0
    evidence_characters: int = 2000


class WatchedModel:
    """A ChatModel under the deadlines and the losses of one question."""

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
        """What `read` makes of the reply, or None where the model is lost or late.

        The loss is noted as StageWatch notes it, with its `consequence`. `read` raises
        LLMError for a reply that it cannot use, which is the same loss.
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
