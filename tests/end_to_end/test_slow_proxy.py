"""Serve's proxy takes longer to start than Serve waits for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.end_to_end.command import start, until_stopped, with_settings
from tests.end_to_end.conftest import SampleIndex
from tests.end_to_end.running_service import await_ready
from tests.serve.http_server import free_port

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

# Serve's timeout of a minute is not configurable.
SERVE_WITHOUT_PATIENCE = """
from ray.serve._private import api, client
assert api.HTTP_PROXY_TIMEOUT == client.HTTP_PROXY_TIMEOUT == 60
api.HTTP_PROXY_TIMEOUT = client.HTTP_PROXY_TIMEOUT = 0.01
from citeray import main
main()
"""


def test_graph_serves_although_its_proxy_starts_late(sample_index: SampleIndex) -> None:
    port = free_port()
    settings = [*sample_index.settings, f"serve.port={port}"]
    command = with_settings([sys.executable, "-c", SERVE_WITHOUT_PATIENCE, "serve"], settings)
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with until_stopped(process):
        await_ready(f"http://127.0.0.1:{port}", process)
