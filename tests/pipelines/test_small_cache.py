"""A full or read-only cache: an error, no partial copy, and a rerun that completes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from cluster.storage.locations import StoredLocation
from tests.object_store import BUCKET, s3_server
from tests.pipelines.histories import SmallIndex, live
from tests.pipelines.small_cache import FILES, SMALL
from tests.pipelines.test_small_disk import OWN_MOUNTS, ROOT, may_mount

pytestmark = pytest.mark.process

URL = f"s3://{BUCKET}/index"
JOBS = ("read", "update")


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    if not may_mount():
        pytest.skip("this machine lets nobody mount a disk of their own")
    folder = tmp_path_factory.mktemp("disk")
    command = [*OWN_MOUNTS, sys.executable, "-m", "tests.pipelines.small_cache", str(folder), URL]
    with pytest.MonkeyPatch.context() as environment, s3_server(environment) as client:
        place = StoredLocation.at(URL, tmp_path_factory.mktemp("cache"))
        SmallIndex(place, overrides=SMALL).build(FILES[:1])
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        client.delete_dir_contents(BUCKET)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("disk", "fault"),
    [("full", "the disk is full; "), ("read-only", "the file system is read-only; ")],
)
def test_unwritable_cache_is_named_and_has_no_partial_copy(
    attempts: dict[str, dict[str, Any]], job: str, disk: str, fault: str
) -> None:
    found = attempts[f"{job}, {disk}"]
    assert found["said"].startswith("StorageError: /")
    assert fault in found["said"]
    assert found["said"].endswith("can lie elsewhere: --set index.cache=DIR")
    assert (found["version"], found["half"], found["scratch"]) == ("v000001", [], [])


def test_update_completes_with_enough_cache_space(attempts: dict[str, dict[str, Any]]) -> None:
    found = attempts["read, again"]
    assert (found["said"], set(found["found"])) == ("", live(FILES[:1]).keys())
    found = attempts["update, again"]
    assert (found["said"], found["version"]) == ("", "v000002")
