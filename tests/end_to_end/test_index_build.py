"""The index build on a real Ray: counts, damaged sources, a killed driver, shards."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc

from cluster.answers import Question
from cluster.index.layout import CITATIONS, CURRENT, segment_directory
from cluster.index.manifest import read_manifest
from cluster.settings.presets import load_system
from cluster.settings.search_settings import RerankSettings
from cluster.settings.settings import load_settings
from pipelines.sample.write_sample import SampleCorpus, write_sample
from serve.graph.local_graph import local_answerer
from serve.request import Request
from tests.end_to_end.command import (
    BIN,
    ROOT,
    WHOLE_INDEX,
    environment,
    run,
    small_settings,
    with_settings,
)
from tests.end_to_end.conftest import RayHead

pytestmark = pytest.mark.ray

PAGE = b"<!DOCTYPE html><html><body>503 Service Unavailable</body></html>"
DEADLINE_S = 300


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleCorpus:
    return write_sample(tmp_path_factory.mktemp("sample"))


@dataclass(frozen=True)
class Built:
    """A build that ended: where its index is, how it was made, and what it said."""

    index: Path
    settings: list[str]
    done: subprocess.CompletedProcess

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.done.stdout)
        return found


def build_command(source: Path, settings: list[str]) -> list[str]:
    return with_settings([str(BIN / "citeray"), "index", "build", str(source), "--json"], settings)


def build(
    source: Path, index: Path, encoder: Path, shards: int, extra: dict[str, str] | None = None
) -> Built:
    settings = small_settings(index, encoder, shards)
    return Built(index, settings, run(build_command(source, settings), extra))


def live_citations(index: Path) -> list[dict[str, Any]]:
    """Every citation of the published version by PMID, whatever its shard."""
    tables = [
        ipc.open_file(pa.memory_map(str(index / segment_directory(n, s.id) / CITATIONS))).read_all()
        for n, shard in enumerate(read_manifest(index).shards)
        for s in shard.segments
    ]
    rows: list[dict[str, Any]] = pa.concat_tables(tables).sort_by("pmid").to_pylist()
    return rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, sample: SampleCorpus, encoder: Path) -> Built:
    """The sample in one shard, built without interruption on a Ray of the command's own."""
    index = tmp_path_factory.mktemp("whole") / "index"
    return build(sample.sources[0].parent, index, encoder, 1)


@dataclass(frozen=True)
class Mended:
    """Two of three sources damaged, then mended; `between` is what was live meanwhile."""

    damaged: Built
    between: list[int]
    mended: Built


@pytest.fixture(scope="module")
def mended(
    tmp_path_factory: pytest.TempPathFactory,
    sample: SampleCorpus,
    encoder: Path,
    ray_head: RayHead,
) -> Mended:
    folder = tmp_path_factory.mktemp("damaged")
    sources = [Path(shutil.copy(source, folder)) for source in sample.sources]
    good, truncated, page = sources
    truncated.write_bytes(truncated.read_bytes()[:20_000])
    page.write_bytes(PAGE)
    index = folder / "index"
    damaged = build(folder, index, encoder, 4, ray_head.driver)
    between = [row["pmid"] for row in live_citations(index)]

    # Were it read again, the build would fail: only its size and time are as they were.
    before = good.stat()
    good.write_bytes(b"?" * before.st_size)
    os.utime(good, ns=(before.st_atime_ns, before.st_mtime_ns))
    for path, source in zip((truncated, page), sample.sources[1:], strict=True):
        shutil.copy(source, path)
    return Mended(damaged, between, build(folder, index, encoder, 4, ray_head.driver))


def test_the_sample_is_counted_to_the_record(whole: Built) -> None:
    assert whole.done.returncode == 0, whole.done.stderr
    counted = {name: whole.summary[name] for name in ("citations", "superseded", "deleted")}
    assert counted == {"citations": 313, "superseded": 1, "deleted": 1}
    sources = whole.summary["sources"]
    assert [(s["read"], s["kept"], s["deletions"]) for s in sources] == [
        (156, 156, 0),
        (156, 156, 0),
        (5, 3, 1),
    ]
    assert [s["dropped"] for s in sources] == [{}, {}, {"book": 1}]


def test_progress_is_told_on_standard_error(whole: Built) -> None:
    assert "embedding: 315 of 315 citations" in whole.done.stderr
    assert "building shards: 1 of 1 shards" in whole.done.stderr


def test_what_was_built_is_what_info_tells(whole: Built) -> None:
    done = run(with_settings([str(BIN / "citeray"), "index", "info", "--json"], whole.settings))
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["citations"], found["superseded"], found["deleted"]) == (313, 1, 1)
    assert found["last_source"] == "citeray26n0003.xml.gz"
    assert found["failed_sources"] == []


def test_after_a_whole_build_no_staging_is_left(whole: Built) -> None:
    assert sorted(p.name for p in whole.index.iterdir()) == WHOLE_INDEX


@pytest.mark.nightly
def test_damaged_sources_fail_the_build_each_in_one_sentence(mended: Mended) -> None:
    assert mended.damaged.done.returncode == 1
    failed = [x for x in mended.damaged.done.stderr.splitlines() if x.startswith("failed: ")]
    assert len(failed) == 2
    assert "citeray26n0002.xml.gz: damaged or truncated after" in failed[0]
    assert "citeray26n0003.xml.gz: the root element is html" in failed[1]
    assert "2 of 3 files are not in the index" in mended.damaged.done.stderr
    assert "Traceback" not in mended.damaged.done.stderr


@pytest.mark.nightly
def test_the_other_sources_are_published_without_any_record_of_the_damaged(
    mended: Mended,
) -> None:
    assert mended.between == list(range(90_000_001, 90_000_157))


@pytest.mark.nightly
def test_after_mending_only_the_mended_are_read_and_nothing_is_lost(
    mended: Mended, whole: Built
) -> None:
    assert mended.mended.done.returncode == 0, mended.mended.done.stderr
    assert "embedding: 159 of 159 citations" in mended.mended.done.stderr
    assert mended.mended.summary["version"] == "v000002"
    assert live_citations(mended.mended.index) == live_citations(whole.index)


@pytest.mark.parametrize("system", ["bm25", "dense", "citeray"])
@pytest.mark.nightly
def test_one_shard_and_four_give_the_same_results(
    mended: Mended, whole: Built, sample: SampleCorpus, system: str
) -> None:
    asked = json.loads(sample.questions.read_text())["questions"][::8]
    # What codes tokens was learnt from what the first run could read, and so not from the damaged.
    chosen = load_system(system).model_copy(update={"rerank": RerankSettings()})
    rankings = []
    for built in (whole, mended.mended):
        answerer = local_answerer(load_settings(overrides=built.settings))
        found = [
            asyncio.run(answerer.search(Request(Question(q["id"], q["body"]), chosen, 10)))
            for q in asked
        ]
        rankings.append([[c.pmid for c in result.citations] for result in found])
    assert all(rankings[0])
    assert rankings[0] == rankings[1]


@pytest.mark.nightly
def test_a_killed_build_goes_on_to_the_same_index(
    tmp_path: Path, sample: SampleCorpus, encoder: Path, ray_head: RayHead, whole: Built
) -> None:
    index, source = tmp_path / "index", sample.sources[0].parent
    command = build_command(source, small_settings(index, encoder, 1))
    driver = subprocess.Popen(
        command,
        env=environment(ray_head.driver),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    begun = time.monotonic()
    while not list(index.glob("staging/*/*/parsed.json")):
        assert driver.poll() is None, "the build ended before it could be killed"
        assert time.monotonic() - begun < DEADLINE_S
        time.sleep(0.005)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert not (index / CURRENT).exists()

    again = build(source, index, encoder, 1, ray_head.driver)
    assert again.done.returncode == 0, again.done.stderr
    assert live_citations(index) == live_citations(whole.index)
    assert sorted(p.name for p in index.iterdir()) == WHOLE_INDEX
