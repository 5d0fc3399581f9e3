"""Index locations: reading and writing in a folder and in an object store."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from cluster.errors import InputError
from cluster.settings.settings import load_settings
from cluster.storage.locations import (
    Location,
    StoredLocation,
    file_names,
    list_files,
    put,
    remove,
    scratch_folder,
)
from cluster.storage.whole_files import published_atomically, write_atomically
from tests.object_store import BUCKET, s3_server

pytestmark = pytest.mark.process

URL = f"s3://{BUCKET}/place"


@pytest.fixture(scope="module")
def s3() -> Iterator[fs.S3FileSystem]:
    with pytest.MonkeyPatch.context() as environment, s3_server(environment) as client:
        yield client
        client.delete_dir_contents(BUCKET)


@pytest.fixture
def stored(s3: fs.S3FileSystem, tmp_path: Path) -> Iterator[StoredLocation]:
    location = StoredLocation.at(URL, tmp_path / "cache")
    yield location
    remove(location)


@pytest.fixture(params=["folder", "store"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    found: Location = tmp_path / "index"
    return found if request.param == "folder" else request.getfixturevalue("stored")


def test_write_list_read_and_remove(location: Location) -> None:
    write_atomically(location / "a/b.bin", b"12")
    write_atomically(location / "c.bin", b"3")
    assert list_files(location) == {"a/b.bin": 2, "c.bin": 1}
    assert file_names(location) == ["c.bin"]
    assert (location / "a/b.bin").read_bytes() == b"12"
    assert ((location / "a").is_dir(), (location / "c.bin").is_file()) == (True, True)
    remove(location / "a")
    remove(location / "nothing")
    assert list_files(location) == {"c.bin": 1}
    with pytest.raises(FileNotFoundError, match="none"):
        (location / "none").read_bytes()


def fail_midway(location: Location) -> None:
    with published_atomically(location) as aside:
        aside.write_bytes(b"half of it")
        raise RuntimeError


def test_failed_write_publishes_nothing(location: Location) -> None:
    with pytest.raises(RuntimeError):
        fail_midway(location / "a.bin")
    assert [name for name in list_files(location) if name] == []


@pytest.mark.parametrize("name", ["n#1.xml", "n?1.xml", "n 1+2.xml", "n%231.xml"])
def test_object_names_may_have_special_characters(stored: StoredLocation, name: str) -> None:
    put(stored / name / "part.arrow", b"?")
    assert file_names(stored / name) == ["part.arrow"]
    (listed,) = list_files(stored)
    assert (stored / listed).read_bytes() == b"?"


def test_orphaned_scratch_folders_are_removed(stored: StoredLocation) -> None:
    left = stored.scratch / "left"
    left.mkdir(parents=True)
    (left / "file").write_bytes(b"half of it")
    hold = (
        "import fcntl, os, sys; folder = os.open(sys.argv[1], os.O_RDONLY);"
        "fcntl.flock(folder, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    used = stored.scratch / "used"
    used.mkdir()
    command = [sys.executable, "-c", hold, str(used)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        long_ago = time.time() - 3600
        for folder in (left, used):
            os.utime(folder, (long_ago, long_ago))
        with scratch_folder(stored) as mine:
            assert set(stored.scratch.iterdir()) == {used, mine}
        assert list(stored.scratch.iterdir()) == [used]
        holder.communicate(b"")


@pytest.mark.parametrize("name", [URL, "some/index", "file:///some/index"])
def test_index_path_is_a_url_or_a_path(tmp_path: Path, name: str) -> None:
    index = load_settings(overrides=[f"index.path={name}", f"index.cache={tmp_path}"]).index
    path = Path(name.removeprefix("file://")).resolve()
    assert index.location == (StoredLocation.at(URL, tmp_path) if name == URL else path)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://me:secret@bucket/index", "a URL may hold no credentials"),
        ("s3://bucket/index?secret_key=secret", "unknown option secret_key"),
        ("http://host/index", "http:// is not supported"),
    ],
)
def test_invalid_index_urls_are_rejected_without_secrets(url: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        load_settings(overrides=[f"index.path={url}"])
    assert "secret@" not in str(caught.value)
    assert "=secret" not in str(caught.value)
