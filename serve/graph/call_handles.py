"""Calls to stages that run as Ray Serve deployments. This module does not import Ray."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast

from serve.batches.jobs import BatchError
from serve.batches.serve_jobs import ServedBatches
from serve.contracts.backend import Handle, call_handle
from serve.contracts.stage_watch import StageLostError

LEASE_DEADLINE_S = 10.0
BATCHES_DEADLINE_S = 20.0
log = logging.getLogger("citeray")


async def wait_until_ready(handle: Handle) -> None:
    """Wait without a timeout until a deployment reports that it is ready."""
    while True:
        with suppress(Exception):
            await call_handle(handle, "ready")
            return
        await asyncio.sleep(0.2)


class _BatchesClient:
    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        return partial(self._call, method)

    async def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return await asyncio.wait_for(
                call_handle(self._handle, method, *arguments), BATCHES_DEADLINE_S
            )
        except BatchError:
            raise
        except Exception as error:
            # Ray sets `cause` to the exception raised by the deployment's code. That is a bug in
            # the deployment, not a process that died.
            if hasattr(error, "cause"):
                raise
            log.warning("batches: %s got no reply: %r", method, error)
            raise StageLostError(
                "the batches' process does not answer; no batch is lost, try again in a moment"
            ) from error


def batches_client(handle: Handle) -> ServedBatches:
    """Return the deployment that processes batches as `ServedBatches`.

    Each call raises BatchError, or StageLostError while that deployment is down.
    """
    return cast("ServedBatches", _BatchesClient(handle))


class HandleLease:
    """`VersionLease` of the graph, with blocking calls from a thread of a replica."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def acquire(self, holder: str) -> bool:
        """Acquire or renew the lease; raise after LEASE_DEADLINE_S seconds without a reply."""
        acquired: bool = self._handle.acquire.remote(holder).result(timeout_s=LEASE_DEADLINE_S)
        return acquired

    def release(self, holder: str) -> None:
        """Release the lease; raise after LEASE_DEADLINE_S seconds without a reply."""
        self._handle.release.remote(holder).result(timeout_s=LEASE_DEADLINE_S)
