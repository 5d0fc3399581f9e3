"""The jobs of one graph: a store, and the runner that works on it."""

from __future__ import annotations

import asyncio
from typing import Any

from cluster.settings import BatchSettings
from serve.batches.job_store import Job, JobStore, described
from serve.batches.run_jobs import Ask, JobRunner


class ServedBatches:
    """See `serve.http.batches_api.Batches`. One process of a graph has it."""

    def __init__(self, settings: BatchSettings, ask: Ask) -> None:
        self._store = JobStore(settings.folder, settings.waiting, settings.keep_days)
        self._runner = JobRunner(self._store, ask, settings.concurrent)
        self._running: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Work on the jobs from now on, on this event loop; what was left unfinished first."""
        if self._running is None:
            self._running = asyncio.create_task(self._runner.run_forever())

    async def add(self, job: Job) -> dict[str, Any]:
        kept = await asyncio.to_thread(self._store.add, job)
        self._runner.wake()
        return await self.status(kept.id)

    async def list(self) -> list[dict[str, Any]]:
        ids = await asyncio.to_thread(self._store.ids)
        return [await self.status(job_id) for job_id in ids]

    async def status(self, job_id: str) -> dict[str, Any]:
        job = await asyncio.to_thread(self._store.job, job_id)
        return described(job, self._store.progress(job_id))

    async def cancel(self, job_id: str) -> dict[str, Any]:
        progress = await asyncio.to_thread(self._store.cancel, job_id)
        return described(self._store.job(job_id), progress)

    async def run(self, job_id: str) -> bytes:
        return await asyncio.to_thread(self._store.run, job_id)
