"""The `citeray` command as a user runs it, with a tiny model and small settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cluster.index.layout import CURRENT, LEASE
from cluster.storage.compare_and_swap import LOCK
from tests.tiny_models import make_tiny_reader

# Beside the interpreter of the tests, wherever its environment lies.
BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parents[2]
# What lies in the folder of an index that no command is changing, sorted.
WHOLE_INDEX = [CURRENT, LEASE, LOCK, "segments", "versions"]


def small_settings(index: Path, encoder: Path, shards: int) -> list[str]:
    """Overrides for an index that is made in seconds, the same whatever its number of shards."""
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
        "vocabulary.concepts=''",
        "ray.object_store_mb=128",
        "llm.kind=none",
    ]


def with_settings(command: list[str], settings: list[str]) -> list[str]:
    return [*command, *(part for setting in settings for part in ("--set", setting))]


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This environment with the command on its path, no Ray of anyone's, and `extra`."""
    from cluster.ray.session import NICENESS

    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    path = os.pathsep.join((str(BIN), os.environ["PATH"]))
    return {**plain, "PATH": path, "RAY_USAGE_STATS_ENABLED": "0", NICENESS: "0", **extra}


@contextmanager
def ray_of_its_own() -> Iterator[dict[str, str]]:
    """Variables of a Ray that shares no folder with others; its path is short, for sockets."""
    folder = tempfile.mkdtemp(prefix="cr-", dir="/tmp")
    try:
        yield {"RAY_TMPDIR": folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(
    command: list[str],
    extra: Mapping[str, str] | None = None,
    timeout_s: float = 550,
    cwd: Path = ROOT,
) -> subprocess.CompletedProcess:
    """Run to its end, in the project's root if not told otherwise."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        cwd=cwd,
        env=environment(extra or {}),
    )
