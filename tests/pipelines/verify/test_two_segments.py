"""Verification of a stored index needs the local disk of two segments at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.storage.locations import StoredLocation
from tests.object_store import BUCKET, s3_server
from tests.pipelines.histories import SmallIndex
from tests.pipelines.small_disk import require_mounts, run_there

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
    require_mounts()
    with s3_server(monkeypatch) as client:
        index = SmallIndex(StoredLocation.at(URL, tmp_path / "cache"), shards=1)
        index.build(FILES[:1])
        for file in FILES[1:]:
            index.update([file])
        (tmp_path / "disk").mkdir()
        found = run_there("tests.pipelines.verify.two_segments", tmp_path / "disk", URL)
        client.delete_dir_contents(BUCKET)
    assert "the disk is full" in found.pop("three")
    assert found == {"findings": [], "segments": len(FILES)}
