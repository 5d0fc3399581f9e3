"""Calls to stages that run as Ray Serve deployments. This module does not import Ray."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from cluster.answers import Question
from serve.batches.jobs import BatchError, Job
from serve.graph.stages import shard_stage
from serve.graph.watch_stages import StageLostError

TURN_DEADLINE_S = 10.0
BATCHES_DEADLINE_S = 20.0
log = logging.getLogger("citeray")


class Handle(Protocol):
    """A `ray.serve.handle.DeploymentHandle`, which has the methods of its deployment."""

    def options(self, **options: Any) -> Handle:
        """Return a handle to the same deployment with other call options."""
        ...

    def __getattr__(self, method: str) -> Any: ...


async def call(handle: Handle, method: str, *arguments: Any) -> Any:
    """Call a deployment; cancelling this coroutine also cancels the request."""
    response = getattr(handle, method).remote(*arguments)
    try:
        return await response
    except asyncio.CancelledError:
        response.cancel()
        raise


def direct(handle: Handle) -> Handle:
    """Return the handle with calls sent directly to a replica, not through Ray's object store.

    Serve's replicas accept both, with the same token. A direct call takes 4 ms less.
    """
    return handle.options(_by_reference=False)


async def until_ready(handle: Handle) -> None:
    """Wait without a timeout until a deployment reports that it is ready."""
    while True:
        with suppress(Exception):
            await call(handle, "ready")
            return
        await asyncio.sleep(0.2)


async def stream(handle: Handle, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
    """Yield the parts of a streaming call; closing this generator cancels the call."""
    response = getattr(handle.options(stream=True), method).remote(*arguments)
    try:
        async for part in response:
            yield part
    finally:
        response.cancel()


class HandleBackend:
    """The deployments as a `Backend`; `handles` maps the names shown by `/readyz` to handles."""

    def __init__(self, stages: Mapping[str, Handle], shards: Sequence[Handle]) -> None:
        small = {name: direct(stages[name]) for name in ("expander", "encoder")}
        numbered = {shard_stage(n): direct(handle) for n, handle in enumerate(shards)}
        self.handles: dict[str, Handle] = {**stages, **small, **numbered}

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """See `Backend.call`."""
        return await call(self.handles[stage], method, *arguments)

    def stream(self, stage: str, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
        """See `Backend.stream`."""
        return stream(self.handles[stage], method, *arguments)

    def followers(self) -> dict[str, Handle]:
        """Return the deployments that read the index and follow its versions."""
        others = ("encoder", "reranker", "pubmed")
        return {name: handle for name, handle in self.handles.items() if name not in others}


class HandleBatches:
    """Client of the deployment that processes batches.

    Each call raises BatchError, or StageLostError while that deployment is down.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return await asyncio.wait_for(
                call(self._handle, method, *arguments), BATCHES_DEADLINE_S
            )
        except BatchError:
            raise
        except Exception as error:
            # Ray sets `cause` to the exception raised by the deployment's code. That is a bug in
            # the deployment, not a lost process.
            if hasattr(error, "cause"):
                raise
            log.warning("batches: %s got no reply: %r", method, error)
            raise StageLostError(
                "the batches' process does not answer; no batch is lost, try again in a moment"
            ) from error

    async def add(self, job: Job, questions: Sequence[Question]) -> dict[str, Any]:
        """See `Batches.add`."""
        added: dict[str, Any] = await self._call("add", job, tuple(questions))
        return added

    async def list(self, owner: str) -> list[dict[str, Any]]:
        """See `Batches.list`."""
        jobs: list[dict[str, Any]] = await self._call("list", owner)
        return jobs

    async def status(self, job_id: str, owner: str) -> dict[str, Any]:
        """See `Batches.status`."""
        status: dict[str, Any] = await self._call("status", job_id, owner)
        return status

    async def cancel(self, job_id: str, owner: str) -> dict[str, Any]:
        """See `Batches.cancel`."""
        status: dict[str, Any] = await self._call("cancel", job_id, owner)
        return status

    async def run(self, job_id: str, owner: str) -> bytes:
        """See `Batches.run`."""
        run: bytes = await self._call("run", job_id, owner)
        return run

    async def results(
        self, job_id: str, owner: str, after: int, count: int
    ) -> Sequence[dict[str, Any]]:
        """See `Batches.results`."""
        entries: Sequence[dict[str, Any]]
        entries = await self._call("results", job_id, owner, after, count)
        return entries


class HandleTurns:
    """The graph's lease as `Turns`, with blocking calls for a replica's thread."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def take(self, holder: str) -> bool:
        """See `Turns.take`; blocks up to TURN_DEADLINE_S, then raises."""
        taken: bool = self._handle.take.remote(holder).result(timeout_s=TURN_DEADLINE_S)
        return taken

    def give_back(self, holder: str) -> None:
        """See `Turns.give_back`; blocks up to TURN_DEADLINE_S, then raises."""
        self._handle.give_back.remote(holder).result(timeout_s=TURN_DEADLINE_S)
