"""Fakes of Ray Serve's handles that call objects of this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any


class Response:
    """Fake of `DeploymentResponse` and `DeploymentResponseGenerator`."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self.cancelled = False

    def __await__(self) -> Any:
        async def reply() -> Any:
            found = self._work()
            return await found if isinstance(found, Awaitable) else found

        return reply().__await__()

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for part in self._work():
            yield part

    def cancel(self) -> None:
        self.cancelled = True


class LocalHandle:
    """Handle to the object `stage`; keeps its responses."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage
        self.responses: list[Response] = []

    def options(self, **_: Any) -> LocalHandle:
        return self

    def __getattr__(self, method: str) -> Any:
        return _Method(self, method)


class _Method:
    def __init__(self, handle: LocalHandle, name: str) -> None:
        self._handle, self._name = handle, name

    def remote(self, *arguments: Any) -> Response:
        method = getattr(self._handle.stage, self._name)
        response = Response(partial(method, *arguments))
        self._handle.responses.append(response)
        return response
