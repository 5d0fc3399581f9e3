"""The `citeray` command as a user runs it, with a tiny model and small settings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.index.layout import CURRENT, LEASE
from cluster.storage.compare_and_swap import LOCK
from tests.tiny_models import make_tiny_reader

# The folder of the environment's commands.
BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[2]
KEY = "canary-" + "k" * 32
# Secrets in the environment. They must not be written, shown or logged.
CANARIES = {
    "CITERAY_API_KEYS": f"alice:{KEY}",
    "AWS_ACCESS_KEY_ID": "canary-aws-id",
    "AWS_SECRET_ACCESS_KEY": "canary-aws-secret",
    "LLM_KEY": "canary-llm",
    "NCBI_API_KEY": "canary-ncbi",
}
# Contents of an index's folder while no command changes the index, sorted.
WHOLE_INDEX = [CURRENT, LEASE, LOCK, "segments", "versions"]


def small_settings(index: Path, encoder: Path, shards: int) -> list[str]:
    """Return overrides for an index that is built in seconds with a tiny model."""
    return [
        f"index.path={index}",
        f"index.shards={shards}",
        "index.vectors=flat",
        "index.build_threads=1",
        f"encoder.model=file:{encoder}",
        "encoder.dtype=float32",
        "encoder.max_tokens=64",
        "encoder.threads=1",
        f"reader.model=file:{make_tiny_reader(encoder.parent)}",
        "reader.max_tokens=64",
        "namer.model=''",
        "vocabulary.concepts=''",
        "ray.object_store_mb=128",
        "llm.kind=none",
    ]


def with_settings(command: list[str], settings: list[str]) -> list[str]:
    return [*command, *(part for setting in settings for part in ("--set", setting))]


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return this environment without Ray's variables, with the command on its path and `extra`."""
    from cluster.ray.session import NICENESS

    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    path = os.pathsep.join((str(BIN), os.environ["PATH"]))
    return {**plain, "PATH": path, "RAY_USAGE_STATS_ENABLED": "0", NICENESS: "0", **extra}


@contextmanager
def short_folder() -> Iterator[Path]:
    """Yield a folder for Ray's sockets, whose paths have at most 107 characters."""
    folder = tempfile.TemporaryDirectory(prefix="cr-", dir="/tmp", ignore_cleanup_errors=True)
    with folder as path:
        yield Path(path)


@contextmanager
def ray_of_its_own() -> Iterator[dict[str, str]]:
    """Yield variables that give Ray its own folder."""
    with short_folder() as folder:
        yield {"RAY_TMPDIR": str(folder)}


def start(
    command: Sequence[str], extra: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen:
    """Start a command in the project's root; `options` are those of `Popen`."""
    return subprocess.Popen(command, cwd=ROOT, env=environment(extra or {}), **options)


@contextmanager
def until_stopped(process: subprocess.Popen, seconds: float = 180) -> Iterator[subprocess.Popen]:
    """Send SIGTERM to the process at the end of the block, and wait for its end."""
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=seconds)


def run(
    command: list[str],
    extra: Mapping[str, str] | None = None,
    timeout_s: float = 550,
    cwd: Path = ROOT,
) -> subprocess.CompletedProcess:
    """Run a command to its end, by default in the project's root."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        cwd=cwd,
        env=environment(extra or {}),
    )
