"""Compare-and-swap in a folder, an S3 store and a GCS store."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response

from cluster.errors import CiteRayError, StorageError
from cluster.storage import compare_and_swap
from cluster.storage.compare_and_swap import (
    LOCK,
    SwapConflictError,
    read_stamped,
    require_conditional_writes,
    swap,
)
from cluster.storage.locations import Location, StoredLocation
from tests.serve.http_server import serving

pytestmark = pytest.mark.process


@pytest.fixture
def location(index: Location) -> Location:
    return index / "CURRENT"


def test_swap_replaces_an_unchanged_file(location: Location) -> None:
    assert read_stamped(location) is None
    first = swap(location, None, b"1")
    second = swap(location, first, b"2")
    swap(location, second, b"3")
    found = read_stamped(location)
    assert found is not None
    assert found.data == b"3"
    assert -2 < found.age_s < 60
    assert swap(location, found, b"4").data == b"4"


def test_swap_conflicts_with_another_write(location: Location) -> None:
    before = swap(location, None, b"1")
    swap(location, before, b"theirs")
    with pytest.raises(SwapConflictError):
        swap(location, before, b"mine")
    with pytest.raises(SwapConflictError):
        swap(location, None, b"mine")
    found = read_stamped(location)
    assert found is not None
    assert found.data == b"theirs"


@pytest.mark.parametrize("index", ["s3", "gs"], indirect=True)
def test_write_with_lost_response_counts_as_done(location: Location) -> None:
    before = swap(location, None, b"1")
    swap(location, before, b"2")
    assert swap(location, before, b"2").data == b"2"


@pytest.fixture
def careless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredLocation]:
    """An S3 store that ignores If-Match and If-None-Match, as older versions do."""
    api = FastAPI()

    @api.put("/{path:path}")
    async def accept(request: Request) -> Response:
        await request.body()
        return Response(headers={"ETag": '"1"'})

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "anyone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "anything")
    with serving(api) as port:
        url = f"s3://careless/index?endpoint_override=127.0.0.1:{port}&scheme=http"
        yield StoredLocation.at(url, tmp_path)


def test_store_without_conditional_writes_is_rejected(careless: StoredLocation) -> None:
    stamped = swap(careless / "LEASE", None, b"1")
    with pytest.raises(StorageError, match=r"LEASE.*: this store ignores conditional writes"):
        require_conditional_writes(careless / "LEASE", stamped)


def test_held_lock_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_and_swap, "_LOCK_WAIT_S", 0.1)
    held = os.open(tmp_path / LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(CiteRayError, match=r"LEASE\.lock: another process has held this lock"):
        swap(tmp_path / "CURRENT", None, b"1")
    os.close(held)
    assert swap(tmp_path / "CURRENT", None, b"1").data == b"1"


def test_file_system_without_locks_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StorageError, match="this file system has no locks"):
        swap(tmp_path / "CURRENT", None, b"1")
    assert not (tmp_path / "CURRENT").exists()
