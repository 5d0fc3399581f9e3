"""Writers of one index whose every operation on the store is scheduled by the test.

They run the real lease (cluster/index/lease.py) over a store in memory, each in its own thread;
only one thread at a time performs an operation. A test decides the order of the operations, which
writer is stopped or killed before one of them, and which operation of a dead writer is delayed and
arrives later.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, TypeVar
from unittest.mock import patch

from cluster.errors import CiteRayError, StorageError
from cluster.index import lease as leases
from cluster.index import lease_record
from cluster.index.layout import CURRENT, LEASE
from cluster.index.lease import Lease, LeaseLostError, hold_lease
from cluster.storage.compare_and_swap import SwapConflictError
from cluster.storage.conditional_store import Stamped
from cluster.storage.sealed_text import unseal

T = TypeVar("T")
INDEX = Path("/index")
Turn = Literal["go", "die", "die-on-its-way", "lose-reply"]
Part = Literal["compare", "lease"]


class Killed(BaseException):
    """The process of a writer was killed and does nothing more."""


class StagingLostError(Exception):
    """The staged files of a writer were removed."""


class Store:
    """Objects by name, a clock, and delayed operations of dead writers."""

    def __init__(self, without: Part | None = None) -> None:
        self.objects: dict[str, bytes] = {}
        self.now = 0.0
        self.on_their_way: list[Callable[[], object]] = []
        self._without = without
        self._written: dict[str, float] = {}
        self._turns = threading.local()

    def put(self, name: str, data: Any) -> None:
        self._do(lambda: self._write(name, json.dumps(data).encode()))

    def remove(self, name: str) -> None:
        self._do(lambda: self.objects.pop(name, None))

    def listed(self, prefix: str) -> list[str]:
        return self._do(lambda: sorted(name for name in self.objects if name.startswith(prefix)))

    def read(self, name: str) -> Any:
        """Return the content of an object, or None."""
        data = self._do(lambda: self.objects.get(name))
        return None if data is None else json.loads(data)

    def read_stamped(self, path: Path) -> Stamped | None:
        def look() -> Stamped | None:
            if path.name not in self.objects:
                return None
            age_s = self.now - self._written[path.name]
            return Stamped(self.objects[path.name], "", age_s)

        return self._do(look)

    def swap(self, path: Path, expected: Stamped | None, data: bytes) -> Stamped:
        def compare_and_write() -> None:
            found = self.objects.get(path.name)
            compares = self._without is None or (self._without, path.name) == ("lease", CURRENT)
            if compares and found != (expected.data if expected else None):
                raise SwapConflictError(f"{path}: written by another")
            self._write(path.name, data)

        self._do(compare_and_write)
        return Stamped(data, "")

    def pointer(self) -> dict[str, Any] | None:
        """Return the content of CURRENT."""
        data = self.objects.get(CURRENT)
        return None if data is None else unseal(data)

    def held_by(self, writer: Writer | None) -> None:
        """Attribute the operations of this thread to `writer`."""
        self._turns.writer = writer

    def _write(self, name: str, data: bytes) -> None:
        self.objects[name] = data
        self._written[name] = self.now

    def _do(self, operation: Callable[[], T]) -> T:
        writer = getattr(self._turns, "writer", None)
        return writer.at_turn(operation) if writer else operation()

    @contextmanager
    def behind_the_lease(self) -> Iterator[None]:
        """Let the real lease use this store and clock within the block."""
        clock = SimpleNamespace(monotonic=lambda: self.now)
        may = {"may_be_replaced": lambda *_: True} if self._without == "lease" else {}
        with (
            patch.multiple(
                leases, swap=self.swap, read_stamped=self.read_stamped, time=clock, **may
            ),
            patch.object(leases, "current_pointer", lambda _: self.pointer()),
            patch.object(lease_record, "current_pointer", lambda _: self.pointer()),
            patch.object(lease_record, "file_names", lambda _: []),
        ):
            yield


class Writer:
    """A command that adds `citation` to the index; `outcome` is its result."""

    def __init__(self, store: Store, citation: str, *, sweeps: bool = False) -> None:
        self.store, self.citation, self._sweeps = store, citation, sweeps
        self.lease: Lease | None = None
        self.published = ""
        self.outcome = ""
        self.was_expired = self.dead = False
        self._turn: Turn = "go"
        self._mine, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._theirs.acquire()

    @property
    def ended(self) -> bool:
        return bool(self.outcome)

    def step(self, turn: Turn = "go") -> None:
        """Run the next operation, or the fault `turn` instead."""
        self._turn = turn
        self._mine.release()
        self._theirs.acquire()

    def at_turn(self, operation: Callable[[], T]) -> T:
        if self.dead:
            raise Killed
        self._theirs.release()
        self._mine.acquire()
        turn, self._turn = self._turn, "go"
        if turn == "go":
            return operation()
        if turn == "lose-reply":
            operation()
            raise StorageError("the store's reply did not come")
        self.dead = True
        if turn == "die-on-its-way":
            self.store.on_their_way.append(operation)
        raise Killed

    def end(self) -> None:
        """Kill the writer, so that its thread ends."""
        while not self.ended:
            self.step("die")
        self._thread.join()

    def _run(self) -> None:
        self.store.held_by(self)
        try:
            with hold_lease(INDEX, "update") as self.lease:
                self._update(self.lease)
            self.outcome = "done"
        except Killed:
            self.outcome = "killed"
        except StagingLostError:
            self.outcome = "staging lost"
        except (CiteRayError, LeaseLostError) as error:
            self.outcome = type(error).__name__
        finally:
            self.outcome = self.outcome or "failed"
            self._theirs.release()

    def _update(self, lease: Lease) -> None:
        """Update as `update_index` and `publish_update` do, with one object instead of many."""
        store, mine = self.store, [f"staging/{self.citation}-{part}" for part in range(3)]
        self._clean(lease)
        base = self._held()
        for part in mine:
            store.put(part, self.citation)
        version = lease.reserve_version()
        if not set(mine) <= set(store.listed("staging/")):
            raise StagingLostError
        store.put(f"segments/{self.citation}", self.citation)
        manifest = {
            "citations": sorted({*base["citations"], self.citation}),
            "history": [*base["history"], version],
        }
        lease.check()
        store.put(f"versions/{version}", manifest)
        store.put(f"taken-{version}", mine)
        lease.switch(version, checksum(manifest))
        self.published = version
        self._clean(lease)

    def _held(self) -> dict[str, list[str]]:
        pointer = self.store.pointer()
        none: dict[str, list[str]] = {"citations": [], "history": []}
        return self.store.read(f"versions/{pointer['version']}") if pointer else none

    def _clean(self, lease: Lease) -> None:
        """Remove the staged files of published versions, or all of them when sweeping."""
        if self._sweeps:
            for name in self.store.listed("staging/"):
                self.store.remove(name)
            return
        published = self._held()["history"]
        for note in self.store.listed("taken-"):
            if note.removeprefix("taken-") in published:
                lease.check()
                taken = self.store.read(note)
                for part in taken or ():
                    self.store.remove(part)
            self.store.remove(note)


def checksum(manifest: dict[str, list[str]]) -> str:
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()


def renew(writer: Writer) -> bool:
    """Renew the lease in place of its renewal thread, which runs while the process is not stopped.

    Returns False if the writer is stopped during its own renewal.
    """
    lease = writer.lease
    if lease is None or LEASE not in writer.store.objects:
        return True
    if lease._lock.locked():
        return False
    with suppress(CiteRayError):
        lease.renew()
    return True
