from __future__ import annotations

import gc
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.index.layout import CURRENT, VECTORS, segment_directory, vocabulary_file
from cluster.index.manifest import Manifest, read_manifest
from cluster.settings.settings import Settings, load_settings
from cluster.settings.stages.expander import RecogniserSettings
from pipelines.indexing.shards.compact_shard import prune
from serve.graph.follow_versions import Follower, follow_shard, follow_vocabulary
from serve.graph.load_stages import open_manifest
from serve.graph.version_lease import MemoryLease
from serve.question.expand_question import LinkedRecogniser
from serve.search.shard_stage import ShardVersion
from tests.pipelines.histories import File, SmallIndex
from tests.publish_manifest import publish
from tests.tiny_models import make_tiny_tagger

pytestmark = pytest.mark.slow

FIRST: File = [(1, "aspirin"), (2, "warfarin"), (3, "heparin")]
SECOND: File = [(2, None), (4, "dabigatran")]


@pytest.fixture
def index(tmp_path: Path) -> SmallIndex:
    found = SmallIndex(tmp_path / "index", shards=1)
    found.build([FIRST])
    return found


def settings(index: SmallIndex, *more: str) -> Settings:
    return load_settings(overrides=[f"index.path={index.path}", "index.shards=1", *more])


def follower(index: SmallIndex, deployed: Manifest | None = None) -> Follower[ShardVersion]:
    return follow_shard(settings(index), deployed or read_manifest(index.path), 0)


def look(follower: Follower, times: int = 1) -> str:
    """Return the version after `times` polls."""
    for _ in range(times):
        assert follower.look(MemoryLease(), "a")
    return follower.state().name.version


def held(follower: Follower[ShardVersion]) -> list[int]:
    shard = follower.current.value
    return [pmid for pmid in range(1, 10) if shard.citation(pmid)]


def compact_and_prune(index: SmallIndex) -> Manifest:
    """Compact and prune; pruning requires that the staging folder is gone."""
    manifest = index.compact()
    shutil.rmtree(index.path / "staging")
    assert prune(index.path, manifest)
    return manifest


def test_follower_serves_a_newer_version(index: SmallIndex) -> None:
    found = follower(index)
    assert (look(found), held(found)) == ("v000001", [1, 2, 3])
    old = found.current.value
    [before] = [s.opened for s in old.reader.segments]
    index.update([SECOND])
    assert (look(found), held(found)) == ("v000002", [1, 3, 4])
    assert found.state().name.last_source == "pubmed26n0002.xml.gz"
    # Shared segments are opened once, and requests on the old version can finish.
    first, _ = (s.opened for s in found.current.value.reader.segments)
    assert first is before
    assert old.citation(2) is not None
    assert old.citation(4) is None
    assert old.name.version == "v000001"


def test_pinned_stage_stays_on_its_version(index: SmallIndex) -> None:
    index.update([SECOND])
    pinned = settings(index, "serve.as_of=pubmed26n0001.xml.gz")
    found = follow_shard(pinned, open_manifest(pinned), 0)
    found.follow(0.01, MemoryLease())
    time.sleep(0.1)
    assert (found.state().name.version, found.state().refused) == ("v000001", "")
    assert held(found) == [1, 2, 3]
    assert held(follower(index)) == [1, 3, 4]
    early = settings(index, "serve.as_of=pubmed25n0001.xml.gz")
    with pytest.raises(InputError, match=r"pubmed25n0001\.xml\.gz: no version of .* is old enough"):
        open_manifest(early)


def test_rewritten_segment_is_reopened(index: SmallIndex) -> None:
    found = follower(index)
    before = found.current.value.reader.segments[0].opened
    manifest = read_manifest(index.path)
    [entry] = manifest.segments
    changed = entry.model_copy(update={"citations": entry.citations + 1})
    shard = manifest.shards[0].model_copy(update={"segments": (changed,)})
    publish(index.path, manifest.model_copy(update={"version": "v000002", "shards": (shard,)}))
    look(found)
    assert found.current.value.reader.segments[0].opened is not before


def test_follower_waits_for_the_lease(index: SmallIndex) -> None:
    found = follower(index)
    index.update([SECOND])
    lease = MemoryLease()
    lease.acquire("another")
    assert not found.look(lease, "a")
    assert found.state().name.version == "v000001"
    lease.release("another")
    assert found.look(lease, "a")
    assert found.state().name.version == "v000002"
    assert lease.acquire("another")


def without_vectors(index: SmallIndex, manifest: Manifest) -> None:
    segment = manifest.shards[0].segments[-1]
    (index.path / segment_directory(0, segment.id) / VECTORS).unlink()


def with_a_changed_byte(index: SmallIndex, manifest: Manifest) -> None:
    segment = manifest.shards[0].segments[-1]
    path = index.path / segment_directory(0, segment.id) / VECTORS
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def changed(**fields: object) -> Callable[[SmallIndex, Manifest], None]:
    return lambda index, manifest: publish(index.path, manifest.model_copy(update=fields))


def of_another_encoder(index: SmallIndex, manifest: Manifest) -> None:
    encoder = manifest.encoder.model_copy(update={"model": "other", "sha256": "f" * 64})
    changed(encoder=encoder)(index, manifest)


def with_more_shards(index: SmallIndex, manifest: Manifest) -> None:
    changed(shards=manifest.shards * 2)(index, manifest)


OLD = "simple-lower-english-stop-stem-1"
UNSERVABLE = {
    "a missing file": (without_vectors, r"vectors\.faiss: missing from the index"),
    "a damaged file": (with_a_changed_byte, r"vectors\.faiss: its checksum differs"),
    "another encoder": (of_another_encoder, r"vectors are by other \(ffffffffffff\)"),
    "more shards": (with_more_shards, "it has 2 shards, the graph was started on 1"),
    "an unknown analyser": (changed(analyser="latin-0"), "made by latin-0"),
    "another analyser": (changed(analyser=OLD), f"made by {OLD}, the graph was started with"),
    "a newer format": (changed(format=99), "index format 99"),
    "no BM25 of passages": (changed(bm25_over=("citations",)), "no BM25 over passages"),
}


@pytest.mark.parametrize(("break_it", "said"), UNSERVABLE.values(), ids=UNSERVABLE)
def test_unservable_version_is_refused_and_the_old_one_kept(
    index: SmallIndex, break_it: Callable[[SmallIndex, Manifest], None], said: str
) -> None:
    found = follower(index)
    break_it(index, index.update([SECOND]))
    assert (look(found), held(found)) == ("v000001", [1, 2, 3])
    refused = found.state().refused
    assert re.search(said, refused)
    assert refused.startswith("v000002 is not served: ")
    assert "\n" not in refused


def test_repaired_version_is_served_after_back_off(index: SmallIndex) -> None:
    found = follower(index)
    manifest = index.update([SECOND])
    path = index.path / segment_directory(0, manifest.shards[0].segments[-1].id) / VECTORS
    data = path.read_bytes()
    path.unlink()
    assert look(found, times=3) == "v000001"
    path.write_bytes(data)
    assert look(found, times=6) == "v000002"
    assert found.state().refused == ""


def test_damaged_version_is_retried_with_back_off(index: SmallIndex) -> None:
    found = follower(index)
    with_a_changed_byte(index, index.update([SECOND]))
    tries: list[str] = []

    class CountingLease(MemoryLease):
        def acquire(self, holder: str) -> bool:
            tries.append(holder)
            return super().acquire(holder)

    for _ in range(200):
        found.look(CountingLease(), "a")
    assert 2 < len(tries) < 12


def test_damaged_pointer_is_reported_until_repaired(index: SmallIndex) -> None:
    found = follower(index)
    pointer = (index.path / CURRENT).read_bytes()
    (index.path / CURRENT).write_text("{")
    assert look(found) == "v000001"
    assert "CURRENT: damaged" in found.state().refused
    (index.path / CURRENT).write_bytes(pointer)
    look(found)
    assert found.state().refused == ""


def test_open_version_survives_pruning(index: SmallIndex) -> None:
    index.update([SECOND])
    found = follower(index)
    compact_and_prune(index)
    reader = found.current.value.reader
    assert held(found) == [1, 3, 4]
    assert reader.statistics(["aspirin"], "citations").frequencies == {"aspirin": 1}
    assert (look(found), held(found)) == ("v000003", [1, 3, 4])


def mapped_files(index: SmallIndex) -> set[str]:
    """Return the index files that this process has mapped, including deleted ones."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.partition(str(index.path))[2] for line in lines if str(index.path) in line}


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_only_the_served_version_stays_mapped(index: SmallIndex) -> None:
    found = follower(index)
    for number in range(3):
        index.update([[(number + 4, f"statin {number}")]])
        look(found)
        found.current.value.reader.statistics(["statin"], "passages")
        [segment] = compact_and_prune(index).segments
        with without_garbage_collection():
            look(found)
            mapped = mapped_files(index)
        assert mapped
        assert all(name.startswith(f"/segments/0000/{segment.id}/") for name in mapped)
        assert not [name for name in mapped if name.endswith("(deleted)")]


def test_new_replica_falls_back_to_the_previous_version(index: SmallIndex) -> None:
    deployed = read_manifest(index.path)
    index.update([SECOND])
    without_vectors(index, index.update([[(5, "statins")]]))
    found = follower(index, deployed)
    assert found.state().name.version == "v000002"
    assert "v000003 is not served" in found.state().refused
    index.manifest = read_manifest(index.path)
    publish(index.path, read_manifest(index.path, "v000002"))
    assert (look(found, 3), found.state().refused) == ("v000002", "")


def test_new_replica_falls_back_to_the_deployed_version(index: SmallIndex) -> None:
    deployed = read_manifest(index.path)
    changed(analyser="latin-0", history=())(index, index.update([SECOND]))
    found = follower(index, deployed)
    assert found.state().name.version == "v000001"
    assert "latin-0" in found.state().refused


def test_vocabulary_follower_serves_the_new_vocabulary(index: SmallIndex) -> None:
    found = follow_vocabulary(settings(index), read_manifest(index.path))
    assert found.current.value.entities("dabigatran") == []
    index.update([[(n, "dabigatran") for n in range(4, 8)]])
    assert look(found) == "v000002"
    assert [e.text for e in found.current.value.entities("Is dabigatran safe?")] == ["dabigatran"]


@pytest.mark.model
def test_transformer_is_reused_with_the_new_vocabulary(index: SmallIndex, tmp_path: Path) -> None:
    model = make_tiny_tagger(tmp_path / "tagger", ["dabigatran"])
    chosen = RecogniserSettings(kind="transformer", model=f"file:{model}")
    with_model = settings(index).model_copy(update={"recogniser": chosen})
    found = follow_vocabulary(with_model, read_manifest(index.path))
    before = found.current.value
    assert isinstance(before, LinkedRecogniser)
    assert [e.concept for e in before.entities("dabigatran")] == [""]
    index.update([[(n, "dabigatran") for n in range(4, 8)]])
    assert look(found) == "v000002"
    after = found.current.value
    assert isinstance(after, LinkedRecogniser)
    assert after.recogniser is before.recogniser
    (entity,) = after.entities("dabigatran")
    assert (entity.concept != "", entity.kind) == (True, "Disease")


def test_damaged_vocabulary_is_refused(index: SmallIndex) -> None:
    found = follow_vocabulary(settings(index), read_manifest(index.path))
    index.update([SECOND])
    (index.path / vocabulary_file("v000002")).write_bytes(b"")
    assert look(found) == "v000001"
    assert "v000002.vocabulary.arrow" in found.state().refused
