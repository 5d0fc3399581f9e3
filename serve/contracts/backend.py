"""Calls from the pipeline to its stages: one interface, in this process or on Ray Serve.

Deadlines, caches and the oracles of ablation studies wrap `Backend.call`. This module does not
import Ray.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cluster.index.manifest import Manifest
from cluster.index.versions import analyser_of
from cluster.settings.settings import Settings
from cluster.text.analysis import ANALYSER, Analyser


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """Facts that are constant while a graph is deployed, such as the BM25 parameters.

    `late` is True if the shards rerank by late interaction over their stored token vectors.
    `reranker` is True if there is a reranker stage. If neither holds, the encoder reranks.
    `bm25_over` names the BM25 indexes of a shard; `analyser` made their terms. `completes` is True
    if the language model may complete follow-up questions: a model that is too small to write
    answers (`llm.ideal_from`) turns them into statements that nobody made. `language_model` is the
    name of the model that writes answers, or "".
    """

    shards: int
    k1: float
    b: float
    late: bool = False
    reranker: bool = False
    bm25_over: tuple[str, ...] = ("citations", "passages")
    analyser: Analyser = ANALYSER
    completes: bool = True
    language_model: str = ""

    @classmethod
    def of(cls, manifest: Manifest, settings: Settings) -> IndexFacts:
        """Return the facts of an index that is served with these settings."""
        index, reranker = settings.index, settings.reranker.is_stage
        late = manifest.tokens is not None and not reranker
        return cls(
            shards=len(manifest.shards),
            k1=index.bm25_k1,
            b=index.bm25_b,
            late=late,
            reranker=reranker,
            bm25_over=manifest.bm25_over,
            analyser=analyser_of(manifest),
            completes=settings.llm.ideal_from == "model",
            language_model=settings.llm.model_id if settings.llm.kind != "none" else "",
        )


def shard_stage(number: int) -> str:
    """Return the stage name of a shard, counted from 0: "shard-0000"."""
    return f"shard-{number:04d}"


class Backend(Protocol):
    """Runs the stages `expander`, `encoder`, `writer`, `pubmed`, `shard-0000`…, `reranker`.

    Exceptions of a stage are raised to the caller. Cancelling a call also cancels the work of the
    stage.
    """

    facts: IndexFacts

    def call(self, stage: str, method: str, *arguments: Any) -> Awaitable[Any]:
        """Call `method` of a stage; the awaitable returns its reply."""
        ...

    def stream(self, stage: str, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
        """Call a `method` that yields its reply in parts; close the generator to cancel it."""
        ...


class LocalBackend:
    """`Backend` of objects in this process; methods that are not coroutines run in a thread."""

    def __init__(self, facts: IndexFacts, **stages: Any) -> None:
        self.facts = facts
        self.stages = stages

    def call(self, stage: str, method: str, *arguments: Any) -> Awaitable[Any]:
        """Call a coroutine method; run any other in a thread, which cannot be cancelled."""
        work = getattr(self.stages[stage], method)
        in_loop = inspect.iscoroutinefunction(work)
        reply: Awaitable[Any] = work(*arguments) if in_loop else asyncio.to_thread(work, *arguments)
        return reply

    def stream(self, stage: str, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
        """Return the stage's async generator."""
        parts: AsyncGenerator[Any, None] = getattr(self.stages[stage], method)(*arguments)
        return parts


class Handle(Protocol):
    """A `ray.serve.handle.DeploymentHandle`, which has the methods of its deployment."""

    def options(self, **options: Any) -> Handle:
        """Return a handle to the same deployment with other call options."""
        ...

    def __getattr__(self, method: str) -> Any: ...


async def call_handle(handle: Handle, method: str, *arguments: Any) -> Any:
    """Call a deployment; cancelling this coroutine also cancels the request."""
    response = getattr(handle, method).remote(*arguments)
    try:
        return await response
    except asyncio.CancelledError:
        response.cancel()
        raise


def direct(handle: Handle) -> Handle:
    """Return the handle with calls sent directly to a replica, which is faster for small replies.

    By default calls go through Ray's object store. Serve's replicas accept both.
    """
    return handle.options(_by_reference=False)


async def stream_handle(handle: Handle, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
    """Yield the parts of a streaming call; closing this generator cancels the call."""
    response = getattr(handle.options(stream=True), method).remote(*arguments)
    try:
        async for part in response:
            yield part
    finally:
        response.cancel()


class HandleBackend:
    """`Backend` of Ray Serve deployments; `handles` maps stage names (as in `/readyz`) to them."""

    def __init__(
        self, facts: IndexFacts, stages: Mapping[str, Handle], shards: Sequence[Handle]
    ) -> None:
        self.facts = facts
        small = {name: direct(stages[name]) for name in ("expander", "encoder")}
        numbered = {shard_stage(n): direct(handle) for n, handle in enumerate(shards)}
        self.handles: dict[str, Handle] = {**stages, **small, **numbered}

    def call(self, stage: str, method: str, *arguments: Any) -> Awaitable[Any]:
        """Call the deployment; cancelling the awaitable also cancels the request."""
        return call_handle(self.handles[stage], method, *arguments)

    def stream(self, stage: str, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
        """Yield the parts of the deployment's reply; closing the generator cancels the call."""
        return stream_handle(self.handles[stage], method, *arguments)

    def followers(self) -> dict[str, Handle]:
        """Return the deployments that read the index and follow its versions."""
        others = ("encoder", "reranker", "pubmed")
        return {name: handle for name, handle in self.handles.items() if name not in others}


class BackendWrapper:
    """Backend that wraps another; subclasses override `call` to change its behaviour."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.facts = backend.facts

    def call(self, stage: str, method: str, *arguments: Any) -> Awaitable[Any]:
        """Forward the call unchanged."""
        return self.backend.call(stage, method, *arguments)

    def stream(self, stage: str, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
        """Forward the call unchanged."""
        return self.backend.stream(stage, method, *arguments)
