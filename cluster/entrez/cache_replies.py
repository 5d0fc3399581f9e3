"""Disk cache of raw replies, with one file for each request; the oldest are evicted first."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from cluster.storage.whole_files import write_atomically

DAY_S = 86_400.0


class ReplyCache:
    """Cache that keeps replies for `days`, in at most `max_bytes`; 0 days disable it.

    Disk errors are not raised: `read` returns None, and `write` returns the reason. `clock` returns
    Unix time in seconds.
    """

    def __init__(
        self,
        folder: Path,
        days: float,
        max_bytes: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._age_s = days * DAY_S
        self._max_bytes = max_bytes
        self._clock = clock

    def read(self, where: str, params: Mapping[str, str]) -> bytes | None:
        """Return the cached reply to exactly this request, or None if missing or expired."""
        path = self._path(where, params)
        try:
            if self._clock() - path.stat().st_mtime >= self._age_s:
                return None
            return path.read_bytes()
        except OSError:
            return None

    def write(self, where: str, params: Mapping[str, str], reply: bytes) -> str:
        """Cache `reply`. Return "", or the reason in words if it could not be written."""
        if self._age_s <= 0 or len(reply) > self._max_bytes:
            return ""
        path = self._path(where, params)
        try:
            write_atomically(path, reply)
            now = self._clock()
            os.utime(path, (now, now))
            self._evict()
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        return ""

    def _path(self, where: str, params: Mapping[str, str]) -> Path:
        request = json.dumps([where, sorted(params.items())])
        return self._folder / hashlib.sha256(request.encode()).hexdigest()

    def _evict(self) -> None:
        """Evict old replies; tolerate files that another process has removed."""
        kept = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                kept.append((found.st_mtime, found.st_size, entry.path))
        total = sum(size for _, size, _ in kept)
        for changed, size, path in sorted(kept):
            if total <= self._max_bytes and self._clock() - changed < self._age_s:
                break
            Path(path).unlink(missing_ok=True)
            total -= size
