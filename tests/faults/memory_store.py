"""An object store in memory, behind Arrow's interface, that fails on request.

As in S3 and GCS, objects are written atomically and listed at once. Faults are: all requests from a
moment on, a few requests ("throttled"), a truncated read, and a lost reply to a conditional write.
Stale lists lack the latest writes and still name the latest removals, as those of an eventually
consistent store do; reads by name are consistent.
"""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import PurePosixPath
from unittest.mock import patch

import pyarrow as pa
from pyarrow import fs

from cluster.storage import compare_and_swap, object_store
from cluster.storage.conditional_store import PreconditionError, Stamped
from cluster.storage.object_store import StoredFile
from tests.faults.clock import JUMP_S, Clock
from tests.faults.inject import SLOW_S, Killed

STORE_FAULTS = (
    *("store down", "throttled", "cut reply", "lost reply", "store kill", "stale lists"),
    *("slow store", "store clock ahead", "store clock back", "readers look"),
)
_THROTTLED = 3
# Maximum number of recent writes and removals that a stale list lacks.
_MOST_UNKNOWN = 8


class MemoryStore:
    """Objects by "bucket/key", each with the number and time of its last write."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.written: dict[str, float] = {}
        self.fired = False
        self.bytes_read = 0
        self._opened: Counter[str] = Counter()
        self._clock = clock or Clock()
        self._changes: list[tuple[str, bytes | None]] = []
        self._fault, self._at, self._moments = "", 0, 0
        self._overtake: Callable[[], bool] = lambda: False
        self._overtaken = self._aside = False

    @contextmanager
    def failing(
        self, fault: str, at: int, fired: list[str], overtake: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Fail within the block from request number `at` on, as Injector does on a disk."""
        self._fault, self._at, self._moments, self.fired = fault, at, 0, False
        self._overtake, self._overtaken = overtake, False
        try:
            yield
        finally:
            self._fault = ""
            if self.fired:
                fired.append(fault)

    def request(self, kind: str) -> bool:
        """Count a request and raise its fault, or return True if its reply must be spoilt."""
        if self._aside:
            return False
        self._moments += 1
        since = self._moments - self._at
        if not self._fault or since < 0:
            return False
        if self._fault in ("cut reply", "lost reply"):
            wanted = "read" if self._fault == "cut reply" else "swap"
            spoils = kind == wanted and not self.fired
            self.fired = self.fired or spoils
            return spoils
        if self._fault == "throttled" and since >= _THROTTLED:
            return False
        if self._fault == "stale lists":
            self.fired = self.fired or kind in ("list", "look")
            return False
        self.fired = True
        if self._fault in ("slow store", "store clock ahead", "readers look"):
            self._turn_clock()
            return False
        if self._fault in ("store kill", "store clock back"):
            raise Killed
        raise OSError(f"{'503 Slow Down' if self._fault == 'throttled' else '500'} on {kind}")

    def _turn_clock(self) -> None:
        if self._fault == "slow store":
            self._clock.let_pass(SLOW_S)
        elif self._fault == "store clock ahead" and not self._overtaken:
            self._clock.set_by(JUMP_S)
        if not self._overtaken:
            self._aside = True
            try:
                self._overtaken = self._overtake() or self._fault != "slow store"
            finally:
                self._aside = False

    def put(self, key: str, data: bytes) -> str:
        self._changes.append((key, self.objects[key][0] if key in self.objects else None))
        number = self.objects.get(key, (b"", 0))[1] + 1
        self.objects[key] = (data, number)
        self.written[key] = time.time()
        return str(number)

    def drop(self, key: str) -> None:
        """Remove an object; raises FileNotFoundError if there is none."""
        if key not in self.objects:
            raise FileNotFoundError(key)
        self._changes.append((key, self.objects.pop(key)[0]))

    def listed(self) -> dict[str, int]:
        """Return the size of each listed object by key, in order."""
        sizes = {key: len(data) for key, (data, _) in self.objects.items()}
        stale = self._fault == "stale lists" and self._moments >= self._at and not self._aside
        unknown = 1 + self._at % _MOST_UNKNOWN if stale else 0
        for key, before in reversed(self._changes[len(self._changes) - unknown :]):
            if before is None:
                sizes.pop(key, None)
            else:
                sizes[key] = len(before)
        return dict(sorted(sizes.items()))

    @contextmanager
    def counting_reads(self, opened: Counter[str]) -> Iterator[None]:
        """Count in `opened` how often each object is opened within the block."""
        with patch.object(self, "_opened", opened):
            yield

    def opens(self, key: str) -> None:
        self._opened[key] += 1

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Open this store in place of every object store within the block."""
        opened = fs.PyFileSystem(_Handler(self))
        with ExitStack() as stack:
            stack.enter_context(patch.object(object_store, "_file_system", lambda *_: opened))
            named = patch.object(
                compare_and_swap, "conditional_object", lambda file: _Conditional(self, file)
            )
            stack.enter_context(named)
            yield


class _Conditional:
    def __init__(self, store: MemoryStore, file: StoredFile) -> None:
        self._store = store
        self._key = file.url.partition("://")[2].partition("?")[0]

    def read(self) -> Stamped | None:
        self._store.request("read")
        if (found := self._store.objects.get(self._key)) is None:
            return None
        return Stamped(found[0], str(found[1]), time.time() - self._store.written[self._key])

    def write(self, data: bytes, expected: str | None) -> str:
        spoilt = self._store.request("swap")
        found = self._store.objects.get(self._key)
        if (str(found[1]) if found else None) != expected:
            raise PreconditionError(self._key)
        stamp = self._store.put(self._key, data)
        if spoilt:
            # The client retries, and the retry is refused because the write was done.
            raise PreconditionError(self._key)
        return stamp


class _Sink(io.BytesIO):
    def __init__(self, store: MemoryStore, key: str) -> None:
        super().__init__()
        self._store, self._key = store, key

    def close(self) -> None:
        if not self.closed:
            self._store.request("write")
            self._store.put(self._key, self.getvalue())
        super().close()


class _Handler(fs.FileSystemHandler):
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def get_type_name(self) -> str:
        return "memory"

    def normalize_path(self, path: str) -> str:
        return path

    def _info(self, path: str) -> fs.FileInfo:
        path = path.rstrip("/")
        if path in self._store.objects:
            data, number = self._store.objects[path]
            return fs.FileInfo(path, fs.FileType.File, size=len(data), mtime_ns=number)
        is_folder = any(key.startswith(f"{path}/") for key in self._store.listed())
        return fs.FileInfo(path, fs.FileType.Directory if is_folder else fs.FileType.NotFound)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        self._store.request("look")
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self._store.request("list")
        base = selector.base_dir.rstrip("/")
        below = {k: size for k, size in self._store.listed().items() if k.startswith(f"{base}/")}
        return [
            fs.FileInfo(key, fs.FileType.File, size=size, mtime_ns=1)
            for key, size in below.items()
            if selector.recursive or str(PurePosixPath(key).parent) == base
        ]

    def delete_file(self, path: str) -> None:
        self._store.request("delete")
        self._store.drop(path)

    def delete_dir(self, path: str) -> None:
        for key in [key for key in self._store.listed() if key.startswith(f"{path}/")]:
            # Stores do not report an error when a missing object is removed.
            with suppress(FileNotFoundError):
                self.delete_file(key)

    def open_input_file(self, path: str) -> pa.NativeFile:
        spoilt = self._store.request("read")
        if path not in self._store.objects:
            raise FileNotFoundError(path)
        data = self._store.objects[path][0]
        self._store.opens(path)
        return pa.PythonFile(_Cut(data) if spoilt else _Reply(data, self._store), mode="r")

    open_input_stream = open_input_file

    def open_output_stream(self, path: str, metadata: object) -> pa.NativeFile:
        self._store.request("write")
        return pa.PythonFile(_Sink(self._store, path), mode="w")

    def _unused(self, *_: object, **__: object) -> None:
        raise NotImplementedError

    create_dir = delete_dir_contents = delete_root_dir_contents = _unused
    copy_file = open_append_stream = _unused

    def move(self, src: str, dest: str) -> None:
        self._store.request("write")
        self._store.put(dest, self._store.objects[src][0])
        self.delete_file(src)


class _Reply(io.BytesIO):
    """The bytes of an object; counts those that are read."""

    def __init__(self, data: bytes, store: MemoryStore) -> None:
        super().__init__(data)
        self._store = store

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self._store.bytes_read += len(found)
        return found


class _Cut(io.BytesIO):
    """A reply whose second half is missing."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() >= len(self.getvalue()) // 2:
            raise OSError("connection reset")
        return super().read(min(size or 0, max(1, len(self.getvalue()) // 2)) if size else size)
