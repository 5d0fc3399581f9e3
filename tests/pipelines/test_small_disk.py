"""A full or read-only disk: an error, nothing published, and a rerun that completes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError, StorageError
from cluster.storage.disk_faults import explain_disk_faults

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
OWN_MOUNTS = ["unshare", "--map-root-user", "--mount"]
# The version and the live citations before each job, and after it.
BEFORE = {"build": (None, 0), "update": ("v000001", 39), "compact": ("v000002", 59)}
AFTER = {"build": ("v000001", 39), "update": ("v000002", 59), "compact": ("v000003", 59)}


def may_mount() -> bool:
    command = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(command, check=False).returncode == 0


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    if not may_mount():
        pytest.skip("this machine lets nobody mount a disk of their own")
    folder = tmp_path_factory.mktemp("disk")
    command = [*OWN_MOUNTS, sys.executable, "-m", "tests.pipelines.small_disk", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


FULL = "the disk is full; free some space and run the same command again: what is whole is kept"
READ_ONLY = "the file system is read-only; make it writable, or name another place"


@pytest.mark.parametrize("job", BEFORE)
@pytest.mark.parametrize(
    ("attempt", "mend"), [("full", FULL), ("read-only", READ_ONLY), ("checked", READ_ONLY)]
)
def test_unwritable_disk_is_named_and_nothing_is_published(
    attempts: dict[str, dict[str, Any]], job: str, attempt: str, mend: str
) -> None:
    found = attempts[f"{job}, {attempt}"]
    assert found["said"].startswith("StorageError: /")
    assert "/index" in found["said"]
    assert found["said"].endswith(mend)
    assert (found["version"], found["live"], found["aside"]) == (*BEFORE[job], [])


def test_index_on_a_read_only_disk_can_be_searched(attempts: dict[str, dict[str, Any]]) -> None:
    assert attempts["update, read-only"]["found"] == 39
    assert attempts["compact, read-only"]["found"] == 29


@pytest.mark.parametrize("job", BEFORE)
def test_job_completes_with_enough_disk_space(
    attempts: dict[str, dict[str, Any]], job: str
) -> None:
    found = attempts[f"{job}, again"]
    assert (found["said"], found["version"], found["live"]) == ("", *AFTER[job])


def test_library_errors_for_a_full_disk_are_recognised() -> None:
    with (
        pytest.raises(StorageError, match=r"^/index/v\.faiss: the disk is full"),
        explain_disk_faults(Path("/index/v.faiss")),
    ):
        raise RuntimeError("write error in v.faiss: 4051 != 2560000 (No space left on device)")


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "no such file"),
        ValueError("odd"),
        InputError("a record says: No space left on device"),
    ],
)
def test_other_errors_are_unchanged(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, explain_disk_faults(Path("/index")):
        raise error
    assert caught.value is error
