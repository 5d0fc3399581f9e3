"""A build that is repeated after it was published to an object store embeds nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cluster.index.manifest import current_version
from cluster.storage.locations import StoredLocation, list_files
from pipelines.sample.generate_citations import write_generated
from tests.end_to_end.command import run, small_settings
from tests.object_store import BUCKET, s3_server

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

URL = f"s3://{BUCKET}/index"


def test_repeated_build_never_calls_the_encoder(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_generated(tmp_path / "pubmed", 50)
    notes, place = tmp_path / "notes.jsonl", StoredLocation.at(URL, tmp_path / "cache")
    # The program notes each time that an encoder is loaded or called.
    command = [sys.executable, "-m", "tests.end_to_end.embed_on_gpus", str(notes)]
    command += [str(tmp_path / "pubmed"), *small_settings(tmp_path / "unused", encoder, 2)]
    command += [f"index.path={URL}", f"index.cache={place.scratch.parent}"]

    def build() -> tuple[int, str | None, dict[str, int]]:
        done = run(command)
        assert done.returncode == 0, done.stderr
        objects = list_files(place)
        del objects["LEASE"]
        return len(notes.read_text().splitlines()), current_version(place), objects

    with s3_server(monkeypatch) as client:
        first = build()
        assert first[:2] == (first[0], "v000001")
        assert first[0] > 0
        assert build() == first
        client.delete_dir_contents(BUCKET)
