"""Files that report every write to the disk."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

# Called with the bytes and the function that writes them.
OnWrite = Callable[[Any, Callable[[Any], int | None]], int | None]


class _WatchedFile(io.FileIO):
    def __init__(self, file: Any, mode: str, on_write: OnWrite) -> None:
        super().__init__(file, mode)
        self._on_write = on_write

    def write(self, data: Any, /) -> int | None:
        return self._on_write(data, super().write)


@contextmanager
def watching_writes(on_write: OnWrite) -> Iterator[None]:
    """Call `on_write` for each write to files that `Path` opens for writing in the block."""
    real = io.open

    def opened(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None,
        errors: str | None = None, newline: str | None = None, *rest: Any, **named: Any,
    ) -> Any:  # fmt: skip
        if not set(mode) & set("wax+"):
            return real(file, mode, buffering, encoding, errors, newline, *rest, **named)
        raw = _WatchedFile(file, mode.replace("b", "").replace("t", ""), on_write)
        stream = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return stream
        return io.TextIOWrapper(stream, encoding, errors, newline)

    with patch.object(io, "open", opened):
        yield
