"""Files written whole or not at all, here or in an object store, and their checksums."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cluster.storage.disk_faults import naming_disk_faults
from cluster.storage.object_store import File
from cluster.storage.places import Place, StoredPlace, put, remove, scratch_folder, upload

_BLOCK = 1 << 20


def sha256_of(path: File) -> str:
    """Hex SHA-256 of a file's bytes, read in blocks of at most 8 MiB."""
    return _digest_of(path, hashlib.sha256())


def md5_of(path: File) -> str:
    """Hex MD5 of a file's bytes, as NCBI publishes it; it guards against accidents alone."""
    return _digest_of(path, hashlib.md5(usedforsecurity=False))


def _digest_of(path: File, digest: Any) -> str:
    for block in _blocks(path):
        digest.update(block)
    return str(digest.hexdigest())


def _blocks(path: File) -> Iterator[bytes]:
    if isinstance(path, StoredPlace):
        yield from path.blocks()
        return
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            yield block


def sync(path: Path) -> None:
    """Have a file's bytes, or a folder's names, on the disk before any loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Place, data: bytes, *, alone: bool = False) -> None:
    """Replace `path` by `data` in one step that survives a crash at any moment.

    `alone` says that nobody else writes it meanwhile: what a killed writer left beside it is
    then written over, and nothing piles up. Raises StorageError where the disk is full, or it or
    the store may not be written.
    """
    if isinstance(path, StoredPlace):
        put(path, data)
        return
    with published_atomically(path, "next" if alone else uuid.uuid4().hex) as aside:
        aside.write_bytes(data)


@contextmanager
def published_atomically(path: Place, aside_name: str = "") -> Iterator[Path]:
    """Give a path beside `path` to write one file to; it takes `path`'s place on success.

    It is on the disk before that, and so is its name after it. What is for an object store is
    written on this machine and sent whole. Raises StorageError where the disk is full, or it or
    the store may not be written.
    """
    if isinstance(path, StoredPlace):
        with scratch_folder(path) as folder:
            yield folder / path.name
            upload(folder / path.name, path)
        return
    aside = path.with_name(f".{path.name}.{aside_name or uuid.uuid4().hex}")
    with naming_disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield aside
            sync(aside)
            os.replace(aside, path)
            sync(path.parent)
        finally:
            aside.unlink(missing_ok=True)


def require_writable(directory: Place) -> None:
    """Raise StorageError now if nothing can be written to `directory`, which is made if absent."""
    probe = directory / f".writable.{uuid.uuid4().hex}"
    if isinstance(probe, StoredPlace):
        put(probe, b"it may be written")
        remove(probe)
        return
    with naming_disk_faults(probe.parent):
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
