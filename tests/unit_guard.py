"""Enforce the limits of unit tests: no torch, no Ray, no process, and at most 2 seconds.

Imports are checked only in runs that consist of unit tests (`make check` and the first part of
`make test`), because other tests in the same process import both.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

FORBIDDEN = ("torch", "ray", "vllm", "sentence_transformers")
PROCESS_EVENTS = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"}
)
LIMIT_S = 2.0
TASKS = Path("/proc/self/task")


def forbidden_imports() -> set[str]:
    """Return the forbidden packages that this process has imported."""
    return {name for name in FORBIDDEN if name in sys.modules}


class Clock:
    """Seconds since its creation, without those in which threads waited for a processor.

    A busy machine must not fail a test. Linux records the waiting time of each thread; elsewhere,
    nothing is subtracted. The result is never below the processor time of the process.
    """

    def __init__(self) -> None:
        self._begun, self._cpu, self._waited = time.monotonic(), time.process_time(), _waiting()

    def seconds(self) -> float:
        """Return the seconds that the same work would take on an idle machine."""
        passed = time.monotonic() - self._begun
        waited = sum(seconds - self._waited.get(task, 0) for task, seconds in _waiting().items())
        return max(passed - waited, time.process_time() - self._cpu)


def _waiting() -> dict[str, float]:
    """Return the seconds for which each thread of this process has waited for a processor."""
    found = {}
    for task in TASKS.glob("*/schedstat"):
        # A thread may end meanwhile.
        with suppress(OSError):
            found[task.parent.name] = int(task.read_text().split()[1]) / 1e9
    return found


class UnitGuard:
    """Pytest plugin that fails each unit test that breaks one of the limits above."""

    def __init__(self, *, only_units: bool, limit_s: float = LIMIT_S) -> None:
        self.only_units = only_units
        self.limit_s = limit_s
        self._processes: list[str] | None = None
        self._known = forbidden_imports()
        sys.addaudithook(self._note_process)

    def _note_process(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._processes is not None and event in PROCESS_EVENTS:
            self._processes.append(f"{event} {arguments[0] if arguments else ''}".strip())

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Fail to collect a file of unit tests that imports a forbidden package."""
        report = yield
        if self.only_units and (imported := self._new_imports()):
            report.outcome = "failed"
            report.longrepr = (
                f"{collector.nodeid} imports {imported}, which unit tests may not: import it in "
                "the tests that need it, or mark the file with pytest.mark.model"
            )
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Apply the same limits, except the time limit, to the fixtures of a unit test."""
        return (yield from self._guarded(item, None))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Fail a unit test that imported a forbidden package, started a process or took long."""
        return (yield from self._guarded(item, Clock()))

    def _guarded(self, item: pytest.Item, clock: Clock | None) -> Generator[None, Any, Any]:
        if item.get_closest_marker("unit") is None:
            return (yield)
        processes: list[str] = []
        self._processes = processes
        try:
            result = yield
        finally:
            self._processes = None
        if problem := self._problem(processes, clock.seconds() if clock else 0):
            pytest.fail(f"{problem}, which a unit test may not (CONTRIBUTING.md)", pytrace=False)
        return result

    def _problem(self, processes: list[str], seconds: float) -> str:
        if self.only_units and (imported := self._new_imports()):
            return f"the test imported {imported}"
        if processes:
            return f"the test started a process ({processes[0]})"
        if seconds > self.limit_s:
            return f"the test took {seconds:.1f} s, more than {self.limit_s:g}"
        return ""

    def _new_imports(self) -> str:
        new = forbidden_imports() - self._known
        self._known |= new
        return ", ".join(sorted(new))
