"""Verification of a stored index needs the local disk of two segments at most."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.storage.locations import StoredLocation
from tests.object_store import BUCKET, s3_server
from tests.pipelines.histories import SmallIndex
from tests.pipelines.test_small_disk import OWN_MOUNTS, ROOT, may_mount

pytestmark = pytest.mark.process

URL = f"s3://{BUCKET}/index"
# Each file is less than half of the one before, so that updates merge no segments.
FILES = [
    [(pmid, "aspirin and fever") for pmid in range(first, first + count)]
    for first, count in ((1, 27), (31, 9), (41, 3), (51, 1))
]


def test_verify_holds_at_most_two_segments_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not may_mount():
        pytest.skip("this machine lets nobody mount a disk of their own")
    with s3_server(monkeypatch) as client:
        index = SmallIndex(StoredLocation.at(URL, tmp_path / "cache"), shards=1)
        index.build(FILES[:1])
        for file in FILES[1:]:
            index.update([file])
        (tmp_path / "disk").mkdir()
        program = [sys.executable, "-m", "tests.pipelines.verify.two_segments"]
        done = subprocess.run(
            [*OWN_MOUNTS, *program, str(tmp_path / "disk"), URL],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        client.delete_dir_contents(BUCKET)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "the disk is full" in found.pop("three")
    assert found == {"findings": [], "segments": len(FILES)}
