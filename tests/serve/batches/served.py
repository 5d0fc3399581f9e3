"""Batches over the small service, for tests over HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from cluster.answers import Answer, Question, SearchResult
from cluster.settings.presets import load_system
from cluster.settings.settings import BatchSettings, load_settings
from serve.batches.serve_jobs import ServedBatches
from serve.http.api import create_api
from serve.request import Request
from tests.serve.http_server import serving
from tests.serve.service import SmallService


class Asking:
    """Asks the small service; `trouble` may raise before it does."""

    def __init__(self, service: SmallService) -> None:
        self._service = service
        self.asked: list[str] = []
        self.trouble: Callable[[Question], None] = lambda question: None
        self.go_on: asyncio.Event | None = None

    async def ask(self, question: Question, system: str, answers: bool) -> Answer | SearchResult:
        self.asked.append(question.id)
        if self.go_on is not None:
            await self.go_on.wait()
        await asyncio.to_thread(self.trouble, question)
        asked = Request(question, load_system(system), snippets=True)
        return await (self._service.answer(asked) if answers else self._service.search(asked))


def settings_at(folder: Path) -> BatchSettings:
    return BatchSettings(folder=folder / "batches", concurrent=2, waiting=5, keep_days=1)


@contextmanager
def served(service: SmallService, folder: Path, asking: Asking) -> Iterator[httpx.Client]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    batches = ServedBatches(settings_at(folder), asking.ask)
    loop.call_soon_threadsafe(batches.begin)
    try:
        with (
            serving(create_api(service, load_settings().serve, batches=batches)) as port,
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http,
        ):
            while http.get("/v1/batches").status_code == 503:
                pass
            yield http
    finally:
        asyncio.run_coroutine_threadsafe(batches.end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
