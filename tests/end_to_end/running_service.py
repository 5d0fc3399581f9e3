"""A running `citeray serve` with keys, secrets, traces and a streaming language model."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

from cluster.models.store import ModelStore
from tests.end_to_end.command import (
    BIN,
    CANARIES,
    KEY,
    short_folder,
    start,
    until_stopped,
    with_settings,
)
from tests.end_to_end.trace_collector import Collector, trace_collector
from tests.end_to_end.waiting import await_that
from tests.serve.chat_endpoint import in_pieces
from tests.serve.http_server import free_port, serving

START_S = 840
SAID = "Metformin activates AMPK in hepatocytes."


@dataclass
class SlowModel:
    """Streaming model that sends a word every `pace_s` seconds; `ended` has each outcome."""

    url: str = ""
    pace_s: float = 0.05
    begun: int = 0
    ended: list[str] = field(default_factory=list)

    async def say(self) -> AsyncIterator[str]:
        self.begun += 1
        how = "cancelled"
        try:
            for piece in in_pieces(SAID):
                yield piece
                await asyncio.sleep(self.pace_s)
            how = "said"
        finally:
            self.ended.append(how)


@contextmanager
def slow_model() -> Iterator[SlowModel]:
    model = SlowModel()
    api = FastAPI()

    @api.post("/v1/chat/completions")
    async def complete(_: Request) -> StreamingResponse:
        return StreamingResponse(model.say(), media_type="text/event-stream")

    with serving(api) as port:
        model.url = f"http://127.0.0.1:{port}/v1"
        yield model


@dataclass(frozen=True)
class Service:
    """The process, the folder of its Ray, and the folder of all other files that it writes."""

    http: httpx.Client
    process: subprocess.Popen
    model: SlowModel
    collector: Collector
    ray_folder: Path
    folder: Path
    settings: list[str]

    @property
    def private(self) -> Path:
        return self.ray_folder / f"citeray-{os.getuid()}"

    @property
    def logs(self) -> Path:
        return self.private / "ray" / "session_latest" / "logs" / "serve"

    @property
    def tree(self) -> list[psutil.Process]:
        process = psutil.Process(self.process.pid)
        return [process, *process.children(recursive=True)]


def await_ready(
    url: str, process: subprocess.Popen, headers: Mapping[str, str] | None = None
) -> list[int]:
    """Return the status codes of /v1/search until its first success."""
    states: list[int] = []
    # One client for all requests, because each new client would load the certificates again.
    with httpx.Client(base_url=url, headers=headers, timeout=30) as http:

        def answers() -> bool:
            assert process.poll() is None, process.communicate()[0]
            reply = http.post("/v1/search", json={"question": "metformin"})
            states.append(reply.status_code)
            return reply.is_success

        await_that(answers, lambda: f"{states}", seconds=START_S, every_s=0.2, starting=True)
    return states


def own_models(store: Path) -> dict[str, str]:
    """Return the variables for an empty model store with the records of converted models."""
    if (records := ModelStore(pins={}).root / "kept").is_dir():
        shutil.copytree(records, store / "kept")
    return {"CITERAY_MODELS": str(store)}


@contextmanager
def running_service(folder: Path, index_settings: Sequence[str]) -> Iterator[Service]:
    """Serve the index that `index_settings` name until the block ends or a test stops the process.

    Every canary is in the environment, so that a test can look for it in whatever is written.
    """
    url = f"http://127.0.0.1:{(port := free_port())}"
    headers = {"Authorization": f"Bearer {KEY}"}
    with short_folder() as ray_folder, slow_model() as model, trace_collector() as collector:
        settings = [*index_settings, f"serve.port={port}"]
        settings += ["llm.kind=url", f"llm.url={model.url}", "llm.model_id=m"]
        settings += ["llm.api_key_env=LLM_KEY", f"serve.batches.folder={folder / 'batches'}"]
        settings += ["serve.trace_share=1", "serve.drain_s=60", "serve.request_deadline_s=120"]
        settings += ["serve.writer.deadline_s=110", "serve.llm.deadline_s=100"]
        variables = {
            **CANARIES,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "HOME": str(folder / "home"),
            "TMPDIR": str(ray_folder),
            **own_models(folder / "models"),
        }
        command = with_settings([str(BIN / "citeray"), "serve"], settings)
        with (folder / "serve.out").open("w") as said:
            process = start(command, variables, stdout=said, stderr=said)
        with until_stopped(process):
            await_ready(url, process, headers)
            with httpx.Client(base_url=url, headers=headers, timeout=60) as http:
                yield Service(http, process, model, collector, ray_folder, folder, settings)
