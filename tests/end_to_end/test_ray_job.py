"""`citeray index build` as a Ray job, from a working directory that travels with it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cluster.index.manifest import read_manifest
from pipelines.sample.write_sample import write_sample
from tests.end_to_end.command import run, small_settings, with_settings
from tests.end_to_end.conftest import RayHead

pytestmark = [pytest.mark.ray, pytest.mark.nightly]


def submit(head: RayHead, source: Path, settings: list[str]) -> subprocess.CompletedProcess:
    job = ["ray", "job", "submit", "--address", head.dashboard, "--working-dir", ".", "--"]
    command = [*job, *with_settings(["citeray", "index", "build", str(source)], settings)]
    return run(command, head.submitter)


def test_a_job_builds_an_index_that_can_be_read(
    tmp_path: Path, ray_head: RayHead, encoder: Path
) -> None:
    source = write_sample(tmp_path / "sample").sources[2]
    done = submit(ray_head, source, small_settings(tmp_path / "index", encoder, 2))
    assert done.returncode == 0, done.stdout + done.stderr
    manifest = read_manifest(tmp_path / "index")
    assert (manifest.citations, len(manifest.shards)) == (3, 2)


def test_a_job_with_a_bad_source_fails_with_its_name(
    tmp_path: Path, ray_head: RayHead, encoder: Path
) -> None:
    page = tmp_path / "page.xml"
    page.write_text("<!DOCTYPE html><html><body>503</body></html>")
    done = submit(ray_head, page, small_settings(tmp_path / "index", encoder, 2))
    assert done.returncode != 0
    assert "page.xml: the root element is html" in done.stdout + done.stderr
    assert not (tmp_path / "index/CURRENT").exists()
