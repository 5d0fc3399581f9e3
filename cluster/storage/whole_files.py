"""Atomic writes of files, in a folder or in an object store, and checksums of files."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.storage.disk_faults import explain_disk_faults
from cluster.storage.locations import Location, StoredLocation, put, remove, scratch_folder, upload
from cluster.storage.object_store import File

_BLOCK = 1 << 20


def sha256_of(path: File) -> str:
    """Return the hex SHA-256 of a file, read in blocks of at most 8 MiB."""
    return _digest_of(path, hashlib.sha256())


def md5_of(path: File) -> str:
    """Return the hex MD5 of a file, as published by NCBI; it only detects accidental damage."""
    return _digest_of(path, hashlib.md5(usedforsecurity=False))


def _digest_of(path: File, digest: Any) -> str:
    for block in _blocks(path):
        digest.update(block)
    return str(digest.hexdigest())


def _blocks(path: File) -> Iterator[bytes]:
    if isinstance(path, StoredLocation):
        yield from path.blocks()
        return
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            yield block


def sync(path: Path) -> None:
    """Flush a file's bytes, or a folder's names, to disk to survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Location, data: bytes, *, alone: bool = False) -> None:
    """Replace `path` by `data` in one atomic step that survives a crash at any moment.

    With `alone`, no other process may write `path` at the same time; the temporary file of a
    killed writer is then overwritten. Raises StorageError if the disk is full, or the disk or
    store is not writable.
    """
    if isinstance(path, StoredLocation):
        put(path, data)
        return
    with published_atomically(path, "next" if alone else uuid.uuid4().hex) as aside:
        aside.write_bytes(data)


@contextmanager
def published_atomically(path: Location, aside_name: str = "") -> Iterator[Path]:
    """Yield a temporary path for one file, which replaces `path` on success.

    The file is flushed to disk before it is renamed, and its name afterwards. A file for an
    object store is written on this machine and then uploaded. Raises StorageError if the disk is
    full, or the disk or store is not writable.
    """
    if isinstance(path, StoredLocation):
        with scratch_folder(path) as folder:
            yield folder / path.name
            upload(folder / path.name, path)
        return
    aside = path.with_name(f".{path.name}.{aside_name or uuid.uuid4().hex}")
    with explain_disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield aside
            sync(aside)
            os.replace(aside, path)
            sync(path.parent)
        finally:
            aside.unlink(missing_ok=True)


def require_writable(directory: Location) -> None:
    """Raise StorageError if `directory`, which is created if absent, is not writable."""
    probe = directory / f".writable.{uuid.uuid4().hex}"
    if isinstance(probe, StoredLocation):
        put(probe, b"it may be written")
        remove(probe)
        return
    with explain_disk_faults(probe.parent):
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
