"""Concurrent commands on one index: the lease, and the removal of staging."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import CiteRayError
from cluster.index.layout import terms_file, vocabulary_file
from cluster.index.lease import LeaseHeldError, LeaseLostError, hold_lease
from cluster.index.manifest import Artefact, Manifest, SegmentEntry, current_version
from cluster.settings.settings import Settings, load_settings
from cluster.storage.locations import list_files, remove
from pipelines.indexing.jobs import build_index, compact_index, update_index
from pipelines.indexing.publish_index import publish_compaction, publish_update, publish_vocabulary
from pipelines.indexing.shards.compact_shard import compact_shard, prune
from pipelines.indexing.staging.drop_staging import drop_taken, note_taken
from pipelines.indexing.staging.plan_build import quantiser_of, segment_plan
from pipelines.verify.verify_index import verify_index
from tests.pipelines.histories import File, SmallIndex, live, name_of
from tests.pipelines.staging import account
from tests.small_index import CODEC, DIMENSIONS

pytestmark = pytest.mark.model

FIRST: File = [(1, "aspirin"), (2, "warfarin")]
SECOND: File = [(2, "heparin"), (3, "iron")]
THIRD: File = [(4, "copper")]


def built(folder: Path) -> SmallIndex:
    index = SmallIndex(folder)
    index.build([FIRST])
    return index


def source_of(folder: Path, number: int) -> Path:
    """Return a file with the size and time in the staging, so that it counts as indexed."""
    path = folder / name_of(number)
    path.write_bytes(b"?")
    os.utime(path, ns=(1, 1))
    return path


def settings_of(index: SmallIndex) -> Settings:
    return load_settings(overrides=[f"index.path={index.path}"])


@pytest.mark.parametrize("another_at_work", [False, True])
def test_update_without_new_sources_removes_published_staging(
    tmp_path: Path, another_at_work: bool
) -> None:
    index = built(tmp_path / "index")
    part = tmp_path / f"index/staging/build/{name_of(1)}-1-1/part-0-9.arrow"
    part.parent.mkdir(parents=True)
    part.touch()
    note_taken(tmp_path / "index/staging/build", [name_of(1)], [], "v000001")
    with hold_lease(index.path, "build") if another_at_work else nullcontext():
        result = update_index([source_of(tmp_path, 1)], settings_of(index), lambda _: None)
    assert result.sources == ()
    assert result.manifest is not None
    assert result.manifest.version == "v000001"
    assert part.exists() == another_at_work
    assert (tmp_path / "index/staging/build").exists() == another_at_work


@pytest.mark.parametrize("job", ["build", "update", "compact", "prune"])
def test_writing_commands_are_refused_while_another_holds_the_lease(
    tmp_path: Path, job: str
) -> None:
    index = built(tmp_path / "index")
    before, new = list_files(tmp_path / "index"), [source_of(tmp_path, 2)]
    with (
        hold_lease(index.path, "build"),
        pytest.raises(LeaseHeldError, match="another build runs, since"),
    ):
        start(job, index, new)
    assert list_files(tmp_path / "index").keys() == before.keys()


def start(job: str, index: SmallIndex, sources: list[Path]) -> Any:
    settings = settings_of(index)
    if job == "build":
        return build_index(sources, settings, lambda _: None)
    if job == "update":
        return update_index(sources, settings, lambda _: None)
    if job == "compact":
        return compact_index(settings, lambda _: None)
    return prune(index.path, index.manifest)  # type: ignore[arg-type]


def test_prune_keeps_versions_published_concurrently(tmp_path: Path) -> None:
    index = built(tmp_path)
    compacted = index.manifest
    index.update([SECOND])
    with pytest.raises(CiteRayError, match="v000002 was published after v000001; run it again"):
        prune(tmp_path, compacted)
    assert index.citations(range(1, 5)).keys() == live([FIRST, SECOND]).keys()


def test_paused_update_does_not_affect_a_concurrent_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both start from v000001; the first is paused after writing all its files."""
    monkeypatch.setattr("cluster.index.lease.LEASE_S", -1000.0)
    index = built(tmp_path)
    base, before = index.manifest, set(list_files(tmp_path / "versions"))

    def overtaken(version: str) -> None:
        index.update([SECOND])

    vocabulary, accounts = index.settings.vocabulary, [account(name_of(9), 0)]
    with (
        pytest.raises(LeaseLostError, match="this update was paused or cut off"),
        hold_lease(tmp_path, "update") as lease,
    ):
        publish_update(lease, base, vocabulary, accounts, [None, None], before_switch=overtaken)
    assert current_version(tmp_path) == "v000003"
    assert index.manifest.history[0].version == base.version
    assert index.citations(range(1, 5)).keys() == live([FIRST, SECOND]).keys()
    left = set(list_files(tmp_path / "versions")) - before
    files = (vocabulary_file("v000003"), terms_file("v000003"))
    assert left == {"v000003.json", *(file.name for file in files)}


def test_failed_publish_leaves_no_file_and_its_number_unused(tmp_path: Path) -> None:
    index = built(tmp_path)
    before = list_files(tmp_path / "versions")

    def fail(*args: Any) -> Artefact:
        publish_vocabulary(*args)
        raise ZeroDivisionError

    vocabulary, accounts = index.settings.vocabulary, [account("n", 0)]
    with hold_lease(tmp_path, "update") as lease, pytest.raises(ZeroDivisionError):
        publish_update(lease, index.manifest, vocabulary, accounts, [None, None], fail)
    assert list_files(tmp_path / "versions") == before
    assert index.update([SECOND]).version == "v000003"


def test_prune_removes_files_of_an_update_beside_a_stopped_compaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = built(tmp_path)
    index.update([SECOND])
    before = index.manifest
    plan = segment_plan("", quantiser_of(tmp_path, before), DIMENSIONS, index.settings.index)
    folded = [compact_shard(tmp_path, n, s, plan, CODEC) for n, s in enumerate(before.shards)]
    monkeypatch.setattr("cluster.index.lease.LEASE_S", -1000.0)
    with pytest.raises(LeaseLostError):
        publish_overtaken(index, before, folded)
    monkeypatch.undo()
    remove(tmp_path / "staging")
    prune(tmp_path, index.manifest)
    found = verify_index(tmp_path)
    assert (found.version, found.findings, found.leftovers) == ("v000003", (), ())
    assert index.citations(range(1, 5)).keys() == live([FIRST, SECOND, THIRD]).keys()


def publish_overtaken(index: SmallIndex, before: Manifest, folded: list[SegmentEntry]) -> None:
    with hold_lease(index.path, "compact") as lease:
        index.update([THIRD])
        publish_compaction(lease, before, folded)


def test_prune_removes_lease_files_of_killed_writers(tmp_path: Path) -> None:
    index = built(tmp_path)
    remove(tmp_path / "staging")
    old, new = tmp_path / ".LEASE.0123", tmp_path / ".CURRENT.4567"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    assert prune(tmp_path, index.manifest) == [old.name]
    assert new.exists()


def staged(index: Path, *names: str) -> Path:
    build = index / "staging/build"
    for name in names:
        (build / name).mkdir(parents=True)
        (build / name / "parsed.json").touch()
    return build


def test_staging_is_removed_once_a_version_includes_it(tmp_path: Path) -> None:
    build = staged(tmp_path / "index", "n1.xml-10-5", "n1.xml-11-6", "n2.xml-10-5")
    (build / "quantiser-a.faiss").touch()
    before = set(build.iterdir())
    note_taken(build, ["n1.xml"], ["quantiser-a.faiss"], "v000001")
    with hold_lease(tmp_path / "index", "build") as lease:
        drop_taken(lease)
    assert set(build.iterdir()) == before
    index = SmallIndex(tmp_path / "index")
    note_taken(build, ["n1.xml"], ["quantiser-a.faiss"], "v000001")
    index.build([THIRD])
    with hold_lease(tmp_path / "index", "build") as lease:
        drop_taken(lease)
    assert [p.name for p in build.iterdir()] == ["n2.xml-10-5"]
