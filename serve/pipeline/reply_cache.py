"""Cache of stage replies for one question."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from serve.contracts.backend import Backend, BackendWrapper

CACHED = frozenset({"understand", "entities", "encode", "statistics", "find", "fetch"})


def _key(asked: Any) -> Hashable:
    """Return a hashable key that is equal for equal arguments; arrays compare by content."""
    if isinstance(asked, np.ndarray):
        return np.ascontiguousarray(asked).tobytes()
    if is_dataclass(asked):
        return tuple(_key(getattr(asked, field.name)) for field in fields(asked))
    if isinstance(asked, Mapping):
        return tuple((key, _key(value)) for key, value in asked.items())
    if isinstance(asked, Sequence) and not isinstance(asked, str):
        return tuple(map(_key, asked))
    known: Hashable = asked
    return known


class CachingBackend(BackendWrapper):
    """Caches the replies of the methods in `CACHED`; failed calls are not cached."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._replies: dict[Hashable, asyncio.Future[Any]] = {}

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """Return the cached reply; identical concurrent calls share one call to the stage."""
        if method not in CACHED:
            return await super().call(stage, method, *arguments)
        key = (stage, method, _key(arguments))
        known = self._replies.get(key)
        if known is None or (known.done() and (known.cancelled() or known.exception())):
            asked = super().call(stage, method, *arguments)
            known = self._replies[key] = asyncio.ensure_future(asked)
        # If one caller times out, the shared call must continue for the others.
        return await asyncio.shield(known)
