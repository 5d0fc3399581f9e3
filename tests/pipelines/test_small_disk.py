"""A full or read-only disk: an error, nothing published, no partial copy; a rerun completes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError, StorageError
from cluster.storage.disk_faults import explain_disk_faults
from cluster.storage.locations import StoredLocation
from tests.object_store import BUCKET, s3_server
from tests.pipelines.histories import SMALL, SmallIndex, live
from tests.pipelines.small_disk import FILES, require_mounts, run_there

pytestmark = pytest.mark.process

PROGRAM = "tests.pipelines.small_disk"
URL = f"s3://{BUCKET}/index"
# The version and the live citations before each job, and after it.
BEFORE = {"build": (None, 0), "update": ("v000001", 39), "compact": ("v000002", 59)}
AFTER = {"build": ("v000001", 39), "update": ("v000002", 59), "compact": ("v000003", 59)}
# Each file is less than half of the one before, so that updates merge no segments.
SHRINKING = [
    [(pmid, "aspirin and fever") for pmid in range(first, first + count)]
    for first, count in ((1, 27), (31, 9), (41, 3), (51, 1))
]
Attempts = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Attempts:
    require_mounts()
    found: Attempts = run_there(PROGRAM, "index", tmp_path_factory.mktemp("disk"))
    return found


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> Attempts:
    require_mounts()
    with pytest.MonkeyPatch.context() as environment, s3_server(environment) as client:
        location = StoredLocation.at(URL, tmp_path_factory.mktemp("cache"))
        SmallIndex(location, overrides=SMALL).build(FILES[:1])
        found: Attempts = run_there(PROGRAM, "copies", tmp_path_factory.mktemp("disk"), URL)
        client.delete_dir_contents(BUCKET)
    return found


FULL = "the disk is full; free some space and run the same command again: what is whole is kept"
READ_ONLY = "the file system is read-only; make it writable, or name another place"


@pytest.mark.parametrize("job", BEFORE)
@pytest.mark.parametrize(
    ("attempt", "mend"), [("full", FULL), ("read-only", READ_ONLY), ("checked", READ_ONLY)]
)
def test_unwritable_disk_is_named_and_nothing_is_published(
    attempts: Attempts, job: str, attempt: str, mend: str
) -> None:
    found = attempts[f"{job}, {attempt}"]
    assert found["said"].startswith("StorageError: /")
    assert "/index" in found["said"]
    assert found["said"].endswith(mend)
    assert (found["version"], found["live"], found["aside"]) == (*BEFORE[job], [])


def test_index_on_a_read_only_disk_can_be_searched(attempts: Attempts) -> None:
    assert attempts["update, read-only"]["fever"] == 39
    assert attempts["compact, read-only"]["fever"] == 29


@pytest.mark.parametrize("job", BEFORE)
def test_job_completes_with_enough_disk_space(attempts: Attempts, job: str) -> None:
    found = attempts[f"{job}, again"]
    assert (found["said"], found["version"], found["live"]) == ("", *AFTER[job])


@pytest.mark.parametrize("job", ["read", "update"])
@pytest.mark.parametrize(
    ("disk", "fault"),
    [("full", "the disk is full; "), ("read-only", "the file system is read-only; ")],
)
def test_unwritable_cache_is_named_and_has_no_partial_copy(
    cached: Attempts, job: str, disk: str, fault: str
) -> None:
    found = cached[f"{job}, {disk}"]
    assert found["said"].startswith("StorageError: /")
    assert fault in found["said"]
    assert found["said"].endswith("can lie elsewhere: --set index.cache=DIR")
    assert (found["version"], found["half"], found["scratch"]) == ("v000001", [], [])


def test_update_completes_with_enough_cache_space(cached: Attempts) -> None:
    found = cached["read, again"]
    assert (found["said"], set(found["found"])) == ("", live(FILES[:1]).keys())
    found = cached["update, again"]
    assert (found["said"], found["version"]) == ("", "v000002")


def test_verify_holds_at_most_two_segments_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_mounts()
    with s3_server(monkeypatch) as client:
        index = SmallIndex(StoredLocation.at(URL, tmp_path / "cache"), shards=1)
        index.build(SHRINKING[:1])
        for file in SHRINKING[1:]:
            index.update([file])
        (tmp_path / "disk").mkdir()
        found = run_there(PROGRAM, "segments", tmp_path / "disk", URL)
        client.delete_dir_contents(BUCKET)
    assert "the disk is full" in found.pop("three")
    assert found == {"findings": [], "segments": len(SHRINKING)}


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
