"""A Ray cluster of two nodes on this machine, whose second node can be killed."""

from __future__ import annotations

import secrets
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.end_to_end.command import BIN, short_folder, start
from tests.end_to_end.waiting import await_that
from tests.faults.on_ray.signals import send
from tests.serve.http_server import free_port


def descendants(pid: int) -> list[int]:
    """Return all descendants of process `pid`, none if it has ended."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def title_of(pid: int) -> str:
    """Return the command line of a process, which in a Ray worker names the task it runs."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").strip("\0")
    except OSError:
        return ""


def kill(pids: Sequence[int]) -> None:
    """Send SIGKILL to the processes that still run."""
    send(pids, signal.SIGKILL)


class TwoNodes:
    """Two nodes started by `ray start`. Only processes that were started here are killed."""

    def __init__(
        self, folder: Path, cpus: int, extra: Mapping[str, str], head_options: Sequence[str]
    ) -> None:
        self._folder = folder
        self._cpus, self._extra = cpus, extra
        self.auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self._port = free_port()
        self.driver = {**self.auth, "RAY_ADDRESS": f"127.0.0.1:{self._port}"}
        head = [f"--port={self._port}", f"--temp-dir={folder}", *head_options]
        self._head = self._start("--head", *head, f"--ray-client-server-port={free_port()}")
        self._second: subprocess.Popen | None = None

    def _start(self, *options: str) -> subprocess.Popen:
        command = [str(BIN / "ray"), "start", *options, "--block", f"--num-cpus={self._cpus}"]
        # No driver prints the logs of its workers, so no process has to send them.
        command += [f"--object-store-memory={128 << 20}", "--include-log-monitor=false"]
        with (self._folder / "start.log").open("ab") as log:
            own = {**self.auth, **self._extra}
            return start(command, own, stdout=log, stderr=log, start_new_session=True)

    def workers(self) -> list[int]:
        """Return the processes of both nodes that run a task or an actor."""
        started = [self._head.pid] + ([self._second.pid] if self._second else [])
        below = [pid for top in started for pid in descendants(top)]
        titles = {pid: title_of(pid) for pid in below}
        return [
            pid
            for pid, title in titles.items()
            if title.startswith("ray::") and "IDLE" not in title and "Agent" not in title
        ]

    def second(self) -> list[int]:
        """Return the processes of the second node."""
        return [self._second.pid, *descendants(self._second.pid)] if self._second else []

    def require_second(self) -> None:
        """Start the second node unless it runs."""
        if self._second is not None and not self._runs(self._second):
            # A node that was declared dead stops by itself.
            self.lose_second()
        if self._second is None:
            self._second = self._start(f"--address=127.0.0.1:{self._port}")
            self._await_raylet(self._second)

    def _runs(self, node: subprocess.Popen) -> bool:
        return any("raylet/raylet" in title_of(pid) for pid in descendants(node.pid))

    def _await_raylet(self, node: subprocess.Popen) -> None:
        log = self._folder / "start.log"
        await_that(lambda: self._runs(node) or node.poll() is not None, log.read_text, every_s=0.1)
        assert node.poll() is None, log.read_text()

    def await_head(self) -> None:
        self._await_raylet(self._head)

    def lose_second(self) -> None:
        assert self._second is not None
        kill(self.second())
        self._second.wait()
        self._second = None

    def stop(self) -> None:
        for node in filter(None, (self._second, self._head)):
            kill([node.pid, *descendants(node.pid)])
            node.wait()


@contextmanager
def two_nodes(
    cpus: int = 2,
    extra: Mapping[str, str] | None = None,
    head_options: Sequence[str] = ("--include-dashboard=false",),
) -> Iterator[TwoNodes]:
    """Start the head with `extra` in its environment; `require_second` starts the second node."""
    with short_folder() as folder:
        nodes = TwoNodes(folder, cpus, extra or {}, head_options)
        try:
            nodes.await_head()
            yield nodes
        finally:
            nodes.stop()
