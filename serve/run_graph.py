"""Runs the Serve graph for the length of a `with` block, telling how its start goes."""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from rich.console import Console

from cluster.errors import CiteRayError
from cluster.session import ray_session
from cluster.settings import Settings
from serve.app import deploy, failure, stop
from serve.client import endpoint_url

START_DEADLINE_S = 900.0
POLL_S = 0.5


def _stages(url: str) -> dict[str, str] | None:
    """Each stage's state, or None while the gateway itself is still starting."""
    try:
        return dict(httpx.get(f"{url}/readyz", timeout=5).json()["stages"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None


def await_ready(settings: Settings, log: Console) -> None:
    """Wait until every stage is ready, saying which are.

    Raises CiteRayError with the deployment's own words when one cannot start.
    """
    begun = time.monotonic()
    said: set[str] = set()
    while time.monotonic() - begun < START_DEADLINE_S:
        stages = _stages(endpoint_url(settings))
        for name, state in (stages or {}).items():
            if state == "ready" and name not in said:
                said.add(name)
                count = f"{len(said)} of {len(stages or {})}"
                log.print(f"{time.monotonic() - begun:5.1f} s  {name} ready ({count})")
        if stages and len(said) == len(stages):
            return
        if trouble := failure():
            raise CiteRayError(f"the graph cannot start: {trouble}")
        time.sleep(POLL_S)
    raise CiteRayError(f"the graph was not ready within {START_DEADLINE_S:.0f} s")


@contextmanager
def running_graph(settings: Settings, log: Console) -> Iterator[None]:
    """The whole graph, ready; it stops with the block."""
    # Ray prints a model's whole configuration and its own steps, httpx each request.
    for name in ("ray", "ray.serve", "httpx"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with ray_session(settings.ray):
        log.print("starting the stages (the language model takes longest)")
        # A plain kill must take the language model's processes along, as Ctrl-C does.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            deploy(settings)
            await_ready(settings, log)
            yield
        finally:
            stop()
