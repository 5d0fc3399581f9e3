from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from pipelines.sample.write_sample import SampleCorpus, write_sample
from tests.end_to_end.command import BIN, environment, run, small_settings, with_settings
from tests.serve.http_server import free_port
from tests.tiny_models import make_tiny_encoder

START_DEADLINE_S = 120


@dataclass(frozen=True)
class RayHead:
    """A Ray of the tests' own: what a driver needs to reach it, and where jobs are sent."""

    driver: dict[str, str]
    submitter: dict[str, str]
    dashboard: str


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("models"))


@dataclass(frozen=True)
class SampleIndex:
    """The sample corpus, and an index of it in two shards; whoever serves it leaves it alone."""

    corpus: SampleCorpus
    path: Path
    settings: list[str]
    built: subprocess.CompletedProcess


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleCorpus:
    """Whoever damages its files copies them first."""
    return write_sample(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="session")
def sample_index(
    tmp_path_factory: pytest.TempPathFactory, encoder: Path, sample: SampleCorpus
) -> SampleIndex:
    """Built on a Ray of the command's own."""
    path = tmp_path_factory.mktemp("sample-index") / "index"
    settings = small_settings(path, encoder, 2)
    command = [str(BIN / "citeray"), "index", "build", str(sample.sources[0].parent), "--json"]
    built = run(with_settings(command, settings))
    assert built.returncode == 0, built.stderr
    return SampleIndex(sample, path, settings, built)


@pytest.fixture(scope="session")
def ray_head() -> Iterator[RayHead]:
    """A `ray start --head` with ports, a token and a folder of its own; only it is stopped."""
    # Short: Ray's sockets lie in it, and a socket's path has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="cr-", dir="/tmp"))
    auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    port, dashboard = free_port(), free_port()
    command = [str(BIN / "ray"), "start", "--head", "--block", "--num-cpus=2"]
    command += [f"--port={port}", f"--temp-dir={folder}", f"--object-store-memory={256 << 20}"]
    command += ["--include-dashboard=true", f"--dashboard-port={dashboard}"]
    command += [f"--dashboard-agent-listen-port={free_port()}"]
    command += [f"--ray-client-server-port={free_port()}"]
    with (folder / "start.log").open("wb") as log:
        head = subprocess.Popen(
            command, env=environment(auth), stdout=log, stderr=log, start_new_session=True
        )
    try:
        url = f"http://127.0.0.1:{dashboard}"
        await_jobs_api(url, auth["RAY_AUTH_TOKEN"], head, folder / "start.log")
        yield RayHead({**auth, "RAY_ADDRESS": f"127.0.0.1:{port}"}, auth, url)
    finally:
        # The group that was started here, and no other: Ray's own workers end with it.
        os.killpg(head.pid, signal.SIGKILL)
        head.wait()
        shutil.rmtree(folder, ignore_errors=True)


def await_jobs_api(url: str, token: str, head: subprocess.Popen, log: Path) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < START_DEADLINE_S:
        assert head.poll() is None, log.read_text()
        try:
            headers = {"Authorization": f"Bearer {token}"}
            if httpx.get(f"{url}/api/jobs/", headers=headers, timeout=5).is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    pytest.fail(f"Ray was not up within {START_DEADLINE_S} s: {log.read_text()}")
