"""Files written whole or not at all, and their checksums."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.disk_faults import naming_disk_faults
from cluster.object_store import File

_BLOCK = 1 << 20


def sha256_of(path: File) -> str:
    """Hex SHA-256 of a file's bytes, read in blocks of 1 MiB."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step that survives a crash at any moment.

    Raises StorageError where the disk is full or may not be written.
    """
    with published_atomically(path) as aside, aside.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    _sync_directory(path.parent)


@contextmanager
def published_atomically(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write one file to; it takes `path`'s place on success.

    Raises StorageError where the disk is full or may not be written.
    """
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with naming_disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield aside
            os.replace(aside, path)
        finally:
            aside.unlink(missing_ok=True)


def require_writable(directory: Path) -> None:
    """Raise StorageError now if nothing can be written to `directory`, which is made if absent."""
    probe = directory / f".writable.{uuid.uuid4().hex}"
    with naming_disk_faults(directory):
        directory.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
