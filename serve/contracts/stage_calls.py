"""Typed calls to stages: `StageMethod` refers to a stage's method, and `StageCalls` calls it.

A stage's class is the only place that states the signature of its methods, because `stage_method`
takes it from there:

    SUGGEST = stage_method("expander", Expander.suggest, "suggest")
    found = await stages.call(SUGGEST, "metf", 10)  # list[Suggestion], or None on failure
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from cluster.settings.stages.serving import ServeSettings
from serve.contracts.backend import Backend, shard_stage
from serve.contracts.stage_watch import StageLostError, StageWatch
from serve.contracts.watched_model import WatchedModel
from serve.llm.chat_form import Message, Say
from serve.llm.language_model import ChatModel
from serve.llm.model_roles import Role

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R", covariant=True)
# Value of `StageMethod.limit` for the deadline of the whole request.
REQUEST = "request"


@dataclass(frozen=True, slots=True)
class StageMethod(Generic[P, R]):
    """A method of a stage, with its argument and reply types and the policy for calls to it.

    `step` names the call in timings, traces and logs. `loss` is the consequence that an answer
    states if the call fails; if it is "", the failure is only logged. `limit` is the section of the
    settings `serve` with the deadline of the call, or REQUEST. `spare` marks optional calls, which
    also end when the time budget of the search is used up.
    """

    stage: str
    name: str
    step: str
    loss: str
    limit: str
    spare: bool

    def at(self, stage: str) -> StageMethod[P, R]:
        """Return this method for another stage."""
        return replace(self, stage=stage)

    def of_shard(self, number: int) -> StageMethod[P, R]:
        """Return this method for shard `number`; its `loss` names the shard."""
        return replace(self, stage=shard_stage(number), loss=f"shard {number} left out")

    def with_loss(self, loss: str) -> StageMethod[P, R]:
        """Return this method with another `loss`, the consequence of a failure."""
        return replace(self, loss=loss)

    def deadline_s(self, settings: ServeSettings) -> float:
        """Return the deadline of a call in seconds."""
        if self.limit == REQUEST:
            return settings.request_deadline_s
        seconds: float = getattr(settings, self.limit).deadline_s
        return seconds


@overload
def stage_method(
    stage: str,
    method: Callable[Concatenate[Any, P], Awaitable[T]],
    step: str,
    loss: str = "",
    *,
    limit: str = "",
    spare: bool = False,
) -> StageMethod[P, T]: ...


@overload
def stage_method(
    stage: str,
    method: Callable[Concatenate[Any, P], T],
    step: str,
    loss: str = "",
    *,
    limit: str = "",
    spare: bool = False,
) -> StageMethod[P, T]: ...


def stage_method(
    stage: str,
    method: Callable[..., Any],
    step: str,
    loss: str = "",
    *,
    limit: str = "",
    spare: bool = False,
) -> StageMethod[Any, Any]:
    """Return a typed reference to `method`, a function of the class of the stage.

    `limit` defaults to the name of the stage.
    """
    return StageMethod(stage, method.__name__, step, loss, limit or stage, spare)


class StageModel:
    """A language model that is called through the writer stage, without streaming."""

    def __init__(self, backend: Backend, role: Role, turn: int) -> None:
        self._backend = backend
        self._role = (role, turn)

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        """Return the reply to `messages`; `options` are those of `ChatModel.chat`."""
        reply: str
        reply = await self._backend.call("writer", "chat", list(messages), options, *self._role)
        return reply


class StageCalls:
    """Stage calls of one question: each has a deadline, and `watch` records failures.

    `quoted` is the maximum number of characters of passages in a prompt.
    """

    def __init__(
        self, backend: Backend, settings: ServeSettings, watch: StageWatch, quoted: int
    ) -> None:
        self.backend = backend
        self.facts = backend.facts
        self.settings = settings
        self.watch = watch
        self._quoted = quoted
        self._replies: dict[Hashable, asyncio.Future[Any]] = {}
        self.model = self.model_of("writer")

    def over(self, backend: Backend) -> StageCalls:
        """Return calls for the same question to another backend."""
        return StageCalls(backend, self.settings, self.watch, self._quoted)

    def call(
        self, method: StageMethod[P, T], *arguments: P.args, **named: P.kwargs
    ) -> Coroutine[Any, Any, T | None]:
        """Return the reply; None if the stage fails or times out. Arguments are positional."""
        _reject(named)
        return self._watched(method, self.backend.call(method.stage, method.name, *arguments))

    async def once(
        self, method: StageMethod[P, T], *arguments: P.args, **named: P.kwargs
    ) -> T | None:
        """Return the reply as `call` does; equal (hashable) arguments share one call."""
        key = (method.stage, method.name, arguments)
        if key not in self._replies:
            self._replies[key] = asyncio.ensure_future(self.call(method, *arguments, **named))
        reply: T | None = await self._replies[key]
        return reply

    def stream(
        self,
        say: Say,
        method: StageMethod[P, AsyncGenerator[str | T, None]],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> Coroutine[Any, Any, T | None]:
        """Return the reply as `call` does; `say` receives the strings streamed before it."""
        _reject(named)
        return self._watched(method, self._spoken(say, method, arguments))

    async def _spoken(
        self, say: Say, method: StageMethod[..., Any], arguments: Sequence[Any]
    ) -> Any:
        parts = self.backend.stream(method.stage, method.name, *arguments)
        async with aclosing(parts):
            async for part in parts:
                if not isinstance(part, str):
                    return part
                say(part)
        raise StageLostError(f"the {method.stage}'s stream ended before its answer")

    def _watched(
        self, method: StageMethod[..., Any], work: Awaitable[T]
    ) -> Coroutine[Any, Any, T | None]:
        deadline_s = method.deadline_s(self.settings)
        return self.watch.run(method.step, work, deadline_s, method.loss, spare=method.spare)

    def chat_model(self, role: Role = "writer", turn: int = 0) -> ChatModel:
        """Return the language model of a role; it raises LLMError if none is configured."""
        return StageModel(self.backend, role, turn)

    def model_of(self, role: Role, turn: int = 0) -> WatchedModel:
        """Return the language model of a role; its failures are recorded in `watch`."""
        model, deadline_s = self.chat_model(role, turn), self.settings.llm.deadline_s
        return WatchedModel(model, self.watch, deadline_s, self._quoted)


def _reject(named: Mapping[str, Any]) -> None:
    """Raise TypeError for keyword arguments, which a ParamSpec cannot exclude."""
    if named:
        raise TypeError(f"a stage's arguments are positional: {', '.join(named)}")


async def require(
    backend: Backend,
    settings: ServeSettings,
    lost: str,
    method: StageMethod[P, T],
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """Return the reply; raise StageLostError with the message `lost` if the call fails."""
    _reject(named)
    work = backend.call(method.stage, method.name, *arguments)
    try:
        reply: T = await asyncio.wait_for(work, method.deadline_s(settings))
        return reply
    except Exception as error:
        raise StageLostError(lost) from error
