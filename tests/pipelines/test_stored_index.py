"""An index in an object store: built, updated, compacted, pruned, verified and read there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from pyarrow import fs

from cluster.errors import IndexFormatError
from cluster.index.copies import at_hand, drop_copies, verified
from cluster.index.layout import CITATIONS, CURRENT, SEGMENT, VECTORS, segment_directory
from cluster.index.manifest import Manifest
from cluster.index.put_segment import find_segment
from cluster.index.versions import named_by, read_as_of
from cluster.storage.locations import StoredLocation, list_files, put, remove
from pipelines.verify.verify_index import verify_index
from tests.cluster.test_index import scores
from tests.object_store import BUCKET, s3_server
from tests.pipelines.histories import SMALL, SmallIndex, live, name_of

pytestmark = [pytest.mark.durability, pytest.mark.nightly]

FILES = [
    [(n, text) for n, text in enumerate(["aspirin", "heparin", "warfarin", "insulin", "iron"], 1)],
    [(2, "heparin again"), (3, None), (6, "copper and aspirin"), (99, None), (1, None)],
]
URL = f"s3://{BUCKET}/kept/index"
QUESTION = "aspirin heparin"


@pytest.fixture(scope="module")
def s3() -> Iterator[fs.S3FileSystem]:
    with pytest.MonkeyPatch.context() as environment, s3_server(environment) as client:
        yield client


@pytest.fixture(scope="module")
def grown(s3: fs.S3FileSystem, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallIndex]:
    """Index built from the first file and updated with the other; tests must not change it."""
    yield grow(StoredLocation.at(URL, tmp_path_factory.mktemp("cache")))
    s3.delete_dir_contents(BUCKET)


def grow(path: Path | StoredLocation) -> SmallIndex:
    index = SmallIndex(path, "sq8", overrides=SMALL)
    index.build(FILES[:1])
    index.update(FILES[1:])
    return index


@pytest.fixture
def location(grown: SmallIndex, tmp_path: Path) -> StoredLocation:
    """The grown index, on a machine without local copies."""
    return StoredLocation.at(URL, tmp_path / "cache")


@pytest.fixture
def elsewhere(s3: fs.S3FileSystem, tmp_path: Path) -> Iterator[StoredLocation]:
    """Location for an index of this test only."""
    location = StoredLocation.at(f"s3://{BUCKET}/own", tmp_path / "cache")
    yield location
    remove(location)


def seen_from(location: StoredLocation, like: SmallIndex) -> SmallIndex:
    return SmallIndex(location, "sq8", manifest=like.manifest, overrides=SMALL)


def found(index: SmallIndex) -> dict[int, tuple[float, float]]:
    """Return the dense and BM25 scores of every result of a search, by PMID."""
    return scores(index.readers(), index.manifest, QUESTION)


def sums(manifest: Manifest) -> list[dict[str, str]]:
    """Return checksums of the files in segments, except tantivy's, whose names are random."""
    return [
        {n: a.sha256 for n, a in segment.artefacts.items() if not n.startswith("bm25-")}
        for segment in manifest.segments
    ]


def newest_segment(index: SmallIndex) -> str:
    """Return the directory of shard 0's newest segment, relative to the index."""
    return str(segment_directory(0, index.manifest.shards[0].segments[-1].id))


@contextmanager
def changed(object_: StoredLocation, data: bytes | None) -> Iterator[None]:
    """Replace or remove the object within the block, and restore it afterwards."""
    before = object_.read_bytes()
    remove(object_)
    if data is not None:
        put(object_, data)
    try:
        yield
    finally:
        put(object_, before)


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def test_index_in_a_store_equals_one_in_a_folder(
    grown: SmallIndex, location: StoredLocation, tmp_path: Path
) -> None:
    here = grow(tmp_path / "index")
    assert sums(grown.manifest) == sums(here.manifest)
    assert grown.manifest.vocabulary == here.manifest.vocabulary
    assert grown.manifest.quantiser == here.manifest.quantiser
    assert found(grown) == found(here)
    versions = [read_as_of(location, name_of(n)).version for n in (1, 2)]
    assert versions == ["v000001", "v000002"]
    read = seen_from(location, grown).citations(range(1, 100))
    assert {pmid: fetched.citation for pmid, fetched in read.items()} == live(FILES)


def test_unreferenced_objects_are_leftovers(grown: SmallIndex, location: StoredLocation) -> None:
    extra = location / newest_segment(grown) / "extra.bin"
    put(extra, b"?" * 100)
    verification = verify_index(location)
    remove(extra)
    assert verification.findings == ()
    assert verification.citations == grown.manifest.citations
    leftovers = [leftover.place for leftover in verification.leftovers]
    assert leftovers == ["staging", f"{newest_segment(grown)}/extra.bin"]
    # No local copy remains.
    assert list_files(location.scratch.parent) == {"scratch": 0}


@pytest.mark.parametrize("file", [CITATIONS, VECTORS])
def test_verify_reads_the_store_not_its_local_copies(grown: SmallIndex, file: str) -> None:
    found(grown)
    name = f"{newest_segment(grown)}/{file}"
    whole = (grown.path / name).read_bytes()
    for damage, said in ((flipped(whole), "sha256"), (None, "missing, the manifest says")):
        with changed(grown.path / name, damage):
            first = verify_index(grown.path).findings[0]
        assert (first.kind, first.place) == ("artefact", name)
        assert said in first.message


def test_segment_without_its_entry_is_rewritten(elsewhere: StoredLocation) -> None:
    index = SmallIndex(elsewhere, "sq8", overrides=SMALL)
    first = index.build(FILES[:1])
    sent = elsewhere / str(segment_directory(0, first.shards[0].segments[0].id))
    remove(sent / SEGMENT)
    remove(elsewhere / CURRENT)
    assert find_segment(sent.parent / sent.name.split(".")[0]) is None
    index.applied = 0
    again = index.build(FILES[:1])
    assert again.shards[0].segments[0].id != first.shards[0].segments[0].id
    assert again.shards[1] == first.shards[1]  # complete, so it is kept
    # The first version's manifest still names the uploaded files.
    assert [leftover.place for leftover in verify_index(elsewhere).leftovers] == ["staging"]
    assert again.version == "v000002"


def test_local_copies_are_reused_and_changed_ones_refetched(
    grown: SmallIndex, location: StoredLocation
) -> None:
    index, name = seen_from(location, grown), f"{newest_segment(grown)}/{VECTORS}"
    before, whole = found(index), (location.copy / name).read_bytes()
    with changed(location / name, None):
        assert found(index) == before
    (location.copy / name).write_bytes(flipped(whole))
    assert found(index) == before
    assert (location.copy / name).read_bytes() == whole


def opened_for_a_job(grown: SmallIndex, location: StoredLocation) -> Path:
    """Return the local copy of the newest segment's citations, as an update opens it."""
    entry = grown.manifest.shards[0].segments[-1]
    return at_hand(location / newest_segment(grown), entry.artefacts, CITATIONS) / CITATIONS


def test_job_rereads_only_interrupted_copies(
    grown: SmallIndex, location: StoredLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = opened_for_a_job(grown, location)
    whole = copy.read_bytes()
    with monkeypatch.context() as patch:
        # Verification of the copy would fail.
        patch.setattr("cluster.index.copies.check_artefact", None)
        assert opened_for_a_job(grown, location) == copy
    copy.write_bytes(whole[:-1])
    assert opened_for_a_job(grown, location).read_bytes() == whole


@pytest.mark.parametrize(
    ("damage", "said"), [(None, "missing from the index"), (b"?", "does not match the manifest")]
)
def test_object_that_differs_from_the_manifest_is_refused_and_not_cached(
    grown: SmallIndex, location: StoredLocation, damage: bytes | None, said: str
) -> None:
    name = f"{newest_segment(grown)}/{VECTORS}"
    with (
        changed(location / name, damage),
        pytest.raises(IndexFormatError, match=f"{URL}/{name}: .*{said}"),
    ):
        seen_from(location, grown).readers()
    assert not (location.copy / name).exists()


def test_concurrent_readers_copy_a_segment_once(
    grown: SmallIndex, location: StoredLocation, caplog: pytest.LogCaptureFixture
) -> None:
    entry = grown.manifest.shards[0].segments[0]
    folder = location / segment_directory(0, entry.id)
    only = {CITATIONS: entry.artefacts[CITATIONS]}
    with caplog.at_level("INFO", "werkzeug"):
        threads = [Thread(target=verified, args=(folder, only)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    gets = [line for line in caplog.messages if "GET " in line and CITATIONS in line]
    assert len(gets) == 1
    assert (folder.copy / CITATIONS).stat().st_size == entry.artefacts[CITATIONS].bytes


def test_stale_copies_are_removed_while_open_ones_stay_readable(elsewhere: StoredLocation) -> None:
    index = grow(elsewhere)
    old, readers = index.manifest, index.readers()
    manifest = index.compact()
    drop_copies(elsewhere, old)
    assert held(elsewhere) & named_by(old)
    index.readers()
    drop_copies(elsewhere, manifest)
    assert held(elsewhere) <= named_by(manifest)
    read = [reader.fetch(range(1, 100), None) for reader in readers]
    assert {f.citation.pmid for part in read for f in part} == live(FILES).keys()


def held(location: StoredLocation) -> set[str]:
    """Return the locally copied segments, relative to the index."""
    return {str(path.relative_to(location.copy)) for path in location.copy.glob("segments/*/*")}
