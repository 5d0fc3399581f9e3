"""Index locations: reading and writing in a folder and in an object store."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

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

pytestmark = pytest.mark.process

URL = "s3://bucket/place"


def test_write_list_read_and_remove(index: Location) -> None:
    write_atomically(index / "a/b.bin", b"12")
    write_atomically(index / "c.bin", b"3")
    assert list_files(index) == {"a/b.bin": 2, "c.bin": 1}
    assert file_names(index) == ["c.bin"]
    assert (index / "a/b.bin").read_bytes() == b"12"
    assert ((index / "a").is_dir(), (index / "c.bin").is_file()) == (True, True)
    remove(index / "a")
    remove(index / "nothing")
    assert list_files(index) == {"c.bin": 1}
    with pytest.raises(FileNotFoundError, match="none"):
        (index / "none").read_bytes()


def fail_midway(location: Location) -> None:
    with published_atomically(location) as aside:
        aside.write_bytes(b"half of it")
        raise RuntimeError


def test_failed_write_publishes_nothing_and_keeps_the_old_file(index: Location) -> None:
    with pytest.raises(RuntimeError):
        fail_midway(index / "a.bin")
    assert [name for name in list_files(index) if name] == []
    write_atomically(index / "a.bin", b"old")
    with pytest.raises(RuntimeError):
        fail_midway(index / "a.bin")
    assert (index / "a.bin").read_bytes() == b"old"
    assert list_files(index) == {"a.bin": 3}


@pytest.mark.parametrize("name", ["n#1.xml", "n?1.xml", "n 1+2.xml", "n%231.xml"])
@pytest.mark.parametrize("index", ["s3", "gs"], indirect=True)
def test_object_names_may_have_special_characters(index: StoredLocation, name: str) -> None:
    put(index / name / "part.arrow", b"?")
    assert file_names(index / name) == ["part.arrow"]
    (listed,) = list_files(index)
    assert (index / listed).read_bytes() == b"?"


@pytest.mark.parametrize("index", ["s3"], indirect=True)
def test_orphaned_scratch_folders_are_removed(index: StoredLocation) -> None:
    left = index.scratch / "left"
    left.mkdir(parents=True)
    (left / "file").write_bytes(b"half of it")
    hold = (
        "import fcntl, os, sys; folder = os.open(sys.argv[1], os.O_RDONLY);"
        "fcntl.flock(folder, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    used = index.scratch / "used"
    used.mkdir()
    command = [sys.executable, "-c", hold, str(used)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        long_ago = time.time() - 3600
        for folder in (left, used):
            os.utime(folder, (long_ago, long_ago))
        with scratch_folder(index) as mine:
            assert set(index.scratch.iterdir()) == {used, mine}
        assert list(index.scratch.iterdir()) == [used]
        holder.communicate(b"")


@pytest.mark.parametrize("name", [URL, "some/index", "file:///some/index"])
def test_index_path_is_a_url_or_a_path(tmp_path: Path, name: str) -> None:
    index = load_settings(overrides=[f"index.path={name}", f"index.cache={tmp_path}"]).index
    path = Path(name.removeprefix("file://")).resolve()
    assert index.location == (StoredLocation.at(URL, tmp_path) if name == URL else path)


def test_invalid_index_url_is_rejected_without_secrets() -> None:
    url = "s3://me:hush@bucket/index?secret_key=hush"
    with pytest.raises(InputError, match="a URL may hold no credentials") as caught:
        load_settings(overrides=[f"index.path={url}"])
    assert "hush" not in str(caught.value)
