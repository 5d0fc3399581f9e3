"""The index build on a real Ray: counts and damaged sources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from cluster.index.layout import CITATIONS, segment_directory
from cluster.index.manifest import read_manifest
from pipelines.sample.write_sample import SampleCorpus
from tests.end_to_end.command import WHOLE_INDEX, small_settings
from tests.end_to_end.conftest import RayHead, SampleIndex
from tests.end_to_end.indexed import Indexed

pytestmark = pytest.mark.ray

PAGE = b"<!DOCTYPE html><html><body>503 Service Unavailable</body></html>"


def live_citations(index: Path) -> list[dict[str, Any]]:
    """Return every citation of the published version, sorted by PMID."""
    tables = [
        ipc.open_file(pa.memory_map(str(index / segment_directory(n, s.id) / CITATIONS))).read_all()
        for n, shard in enumerate(read_manifest(index).shards)
        for s in shard.segments
    ]
    rows: list[dict[str, Any]] = pa.concat_tables(tables).sort_by("pmid").to_pylist()
    return rows


@dataclass(frozen=True)
class Mended:
    """A build with two damaged sources, the PMIDs it published, and a rerun after their repair."""

    index: Path
    damaged: subprocess.CompletedProcess
    between: list[int]
    mended: subprocess.CompletedProcess


@pytest.fixture(scope="module")
def mended(
    tmp_path_factory: pytest.TempPathFactory, sample: SampleCorpus, encoder: Path, ray_head: RayHead
) -> Mended:
    folder = tmp_path_factory.mktemp("damaged")
    sources = [Path(shutil.copy(source, folder)) for source in sample.sources]
    good, truncated, page = sources
    truncated.write_bytes(truncated.read_bytes()[:20_000])
    page.write_bytes(PAGE)
    path = folder / "index"
    index = Indexed(path, small_settings(path, encoder, 4), ray_head.driver)
    damaged = index.command("build", str(folder), "--json")
    between = [row["pmid"] for row in live_citations(path)]

    # The source is now unreadable with unchanged size and time, so rereading it would fail.
    before = good.stat()
    good.write_bytes(b"?" * before.st_size)
    os.utime(good, ns=(before.st_atime_ns, before.st_mtime_ns))
    for path, source in zip((truncated, page), sample.sources[1:], strict=True):
        shutil.copy(source, path)
    return Mended(path, damaged, between, index.command("build", str(folder), "--json"))


def test_build_counts_every_record_of_the_sample(sample_index: SampleIndex) -> None:
    summary = json.loads(sample_index.built.stdout)
    counted = {name: summary[name] for name in ("citations", "superseded", "deleted")}
    assert counted == {"citations": 313, "superseded": 1, "deleted": 1}
    sources = summary["sources"]
    assert [(s["read"], s["kept"], s["deletions"]) for s in sources] == [
        (156, 156, 0),
        (156, 156, 0),
        (5, 3, 1),
    ]
    assert [s["dropped"] for s in sources] == [{}, {}, {"book": 1}]
    assert "embedding: 315 of 315 citations" in sample_index.built.stderr
    assert sorted(p.name for p in sample_index.path.iterdir()) == WHOLE_INDEX


def test_repeated_build_returns_the_published_version(
    sample_index: SampleIndex, sample: SampleCorpus
) -> None:
    done = sample_index.command("build", str(sample.sources[0].parent), "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["version"], summary["citations"]) == ("v000001", 313)
    assert "v000001 already holds a build of these 3 sources with the same settings" in done.stderr
    # No model was fetched, and Ray was not started.
    assert len(done.stderr.splitlines()) == 1
    assert sorted(p.name for p in sample_index.path.iterdir()) == WHOLE_INDEX


def test_info_shows_the_counts_of_the_build(sample_index: SampleIndex) -> None:
    code, stdout, stderr = sample_index.here("info", "--json")
    assert code == 0, stderr
    found = json.loads(stdout)
    assert (found["citations"], found["superseded"], found["deleted"]) == (313, 1, 1)
    assert found["last_source"] == "citeray26n0003.xml.gz"
    assert found["failed_sources"] == []


@pytest.mark.nightly
def test_build_fails_with_one_line_per_damaged_source(mended: Mended) -> None:
    assert mended.damaged.returncode == 1
    failed = [x for x in mended.damaged.stderr.splitlines() if x.startswith("failed: ")]
    assert len(failed) == 2
    assert "citeray26n0002.xml.gz: damaged or truncated after" in failed[0]
    assert "citeray26n0003.xml.gz: the root element is html" in failed[1]
    assert "2 of 3 files are not in the index" in mended.damaged.stderr
    assert "Traceback" not in mended.damaged.stderr


@pytest.mark.nightly
def test_undamaged_sources_are_published(mended: Mended) -> None:
    assert mended.between == list(range(90_000_001, 90_000_157))


@pytest.mark.nightly
def test_rerun_reads_only_the_repaired_sources(mended: Mended, sample_index: SampleIndex) -> None:
    assert mended.mended.returncode == 0, mended.mended.stderr
    assert "embedding: 159 of 159 citations" in mended.mended.stderr
    assert json.loads(mended.mended.stdout)["version"] == "v000002"
    assert live_citations(mended.index) == live_citations(sample_index.path)
