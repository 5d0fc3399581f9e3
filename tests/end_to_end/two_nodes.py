"""A Ray of two nodes on this machine, of which the second may be lost."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.command import BIN, environment
from tests.serve.http_server import free_port

START_DEADLINE_S = 240


def descendants(pid: int) -> list[int]:
    """The processes below `pid`, by /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def title_of(pid: int) -> str:
    """Its command line; Ray puts the task there that a worker runs."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").strip("\0")
    except OSError:
        return ""


def kill(pids: Sequence[int]) -> None:
    """With -9; what has ended meanwhile is passed over."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


class TwoNodes:
    """`ray start` twice on this machine; only what was started here is ever killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self._port = free_port()
        self.driver = {**auth, "RAY_ADDRESS": f"127.0.0.1:{self._port}"}
        head = [f"--port={self._port}", f"--temp-dir={folder}", "--include-dashboard=false"]
        self._head = self._start("--head", *head, f"--ray-client-server-port={free_port()}")
        self._second: subprocess.Popen | None = None

    def _start(self, *options: str) -> subprocess.Popen:
        command = [str(BIN / "ray"), "start", *options, "--block", "--num-cpus=2"]
        command += [f"--object-store-memory={128 << 20}"]
        log = (self._folder / "start.log").open("ab")
        found = environment(self.driver)
        return subprocess.Popen(command, env=found, stdout=log, stderr=log, start_new_session=True)

    def workers(self) -> list[int]:
        """Processes that run or wait for tasks and actors, on either node."""
        started = [self._head.pid] + ([self._second.pid] if self._second else [])
        below = [pid for top in started for pid in descendants(top)]
        titles = {pid: title_of(pid) for pid in below}
        return [
            pid
            for pid, title in titles.items()
            if title.startswith("ray::") and "IDLE" not in title and "Agent" not in title
        ]

    def require_second(self) -> None:
        """Start the second node unless it runs."""
        if self._second is None or self._second.poll() is not None:
            self._second = self._start(f"--address=127.0.0.1:{self._port}")
            self._await_raylet(self._second)

    def _await_raylet(self, node: subprocess.Popen) -> None:
        begun = time.monotonic()
        while not any("raylet/raylet" in title_of(pid) for pid in descendants(node.pid)):
            assert node.poll() is None, (self._folder / "start.log").read_text()
            assert time.monotonic() - begun < START_DEADLINE_S
            time.sleep(0.1)

    def await_head(self) -> None:
        self._await_raylet(self._head)

    def lose_second(self) -> None:
        assert self._second is not None
        kill([self._second.pid, *descendants(self._second.pid)])
        self._second.wait()
        self._second = None

    def stop(self) -> None:
        for node in filter(None, (self._second, self._head)):
            kill([node.pid, *descendants(node.pid)])
            node.wait()


@contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    # Short: Ray's sockets lie in it, and a socket's path has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="cr-", dir="/tmp"))
    nodes = TwoNodes(folder)
    try:
        nodes.await_head()
        yield nodes
    finally:
        nodes.stop()
        shutil.rmtree(folder, ignore_errors=True)
