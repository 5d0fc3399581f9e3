"""Files opened for writing whose every write to the disk is a moment of its own."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

# Given the bytes, and what writes them.
OnWrite = Callable[[Any, Callable[[Any], int | None]], int | None]


class _WatchedFile(io.FileIO):
    def __init__(self, file: Any, mode: str, on_write: OnWrite) -> None:
        super().__init__(file, mode)
        self._on_write = on_write

    def write(self, data: Any, /) -> int | None:
        return self._on_write(data, super().write)


@contextmanager
def watching_writes(on_write: OnWrite) -> Iterator[None]:
    """Every file that Python's `Path` opens for writing within the block is watched for good."""
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
