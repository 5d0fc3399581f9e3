"""The gs:// protocol: sources and an index in a store of it, as in one of S3's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from cluster.errors import StorageError
from cluster.index.layout import CURRENT, VECTORS, segment_directory
from cluster.index.manifest import current_version
from cluster.index.put_segment import find_segment
from cluster.pubmed.parse_articles import read_records
from cluster.storage.object_store import glob_store
from cluster.storage.places import StoredPlace, list_files, put, remove, upload
from cluster.storage.whole_files import require_writable, sha256_of
from pipelines.build.find_sources import find_sources
from pipelines.verify.verify_index import verify_index
from tests.gcs_server import gcs_server, gcs_url
from tests.pipelines.histories import SmallIndex, live
from tests.pipelines.pubmed_server import pubmed_file

pytestmark = pytest.mark.process

FILES = [
    [(n, text) for n, text in enumerate(["aspirin", "heparin", "warfarin", "insulin", "iron"], 1)],
    [(2, "heparin again"), (3, None), (6, "copper and aspirin"), (99, None), (1, None)],
]
# One BM25 side has all there is to send, and half as many objects.
SMALL = ("index.bm25_over=[citations]",)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("account")
    with pytest.MonkeyPatch.context() as environment, gcs_server(environment, folder) as port:
        yield port


@pytest.fixture
def place(port: int, tmp_path: Path) -> Iterator[StoredPlace]:
    """An empty place, and a cache of the test's own."""
    place = StoredPlace.at(gcs_url(port, "place"), tmp_path / "cache")
    yield place
    remove(place)


@pytest.fixture(scope="module")
def grown(port: int, tmp_path_factory: pytest.TempPathFactory) -> SmallIndex:
    """Built of the first file, updated with the other, for tests that leave it so."""
    place = StoredPlace.at(gcs_url(port, "index"), tmp_path_factory.mktemp("cache"))
    index = SmallIndex(place, "sq8", overrides=SMALL)
    index.build(FILES[:1])
    index.update(FILES[1:])
    return index


def test_a_large_file_arrives_whole_and_any_part_of_it_is_read(
    place: StoredPlace, tmp_path: Path
) -> None:
    data = Random(1).randbytes(20_000_000)
    (tmp_path / "large").write_bytes(data)
    upload(tmp_path / "large", place / "large")
    assert sha256_of(place / "large") == sha256_of(tmp_path / "large")
    with (place / "large").open_at_random() as stream:
        assert stream.read_at(10, 12_345_678) == data[12_345_678:12_345_688]
    with pytest.raises(FileNotFoundError, match="place/none"):
        (place / "none").read_bytes()


def test_a_bucket_that_is_not_there_is_refused_before_the_work(port: int, tmp_path: Path) -> None:
    place = StoredPlace.at(gcs_url(port, "index", bucket="none"), tmp_path)
    with pytest.raises(StorageError, match=r"gs://none/index/.*cannot be written") as caught:
        require_writable(place)
    assert "error_info" not in str(caught.value)


def test_a_folder_and_a_glob_give_sources_that_are_read(place: StoredPlace) -> None:
    for number in (10, 9):
        put(place / f"baseline/n{number}.xml.gz", pubmed_file(number))
    found = find_sources([place.url])
    assert [file.name for file in found] == ["n9.xml.gz", "n10.xml.gz"]
    assert [record.pmid for record in read_records(found[0])] == [9]  # type: ignore[union-attr]
    pattern = place.url.replace("place?", "place/**/n1*?")
    assert [file.name for file in glob_store(pattern)] == ["n10.xml.gz"]


def test_another_machine_reads_every_live_citation(grown: SmallIndex, tmp_path: Path) -> None:
    place = StoredPlace.at(str(grown.path), tmp_path / "cache")
    assert current_version(place) == "v000002"
    seen = SmallIndex(place, "sq8", manifest=grown.manifest, overrides=SMALL)
    read = seen.citations(range(1, 100))
    assert {pmid: fetched.citation for pmid, fetched in read.items()} == live(FILES)
    assert grown.manifest is not None
    entry = grown.manifest.shards[0].segments[0]
    folder = segment_directory(0, entry.id)
    assert find_segment(grown.path / folder.parent / folder.name.split(".")[0]) == entry


def test_a_sound_index_verifies_and_an_object_that_is_gone_is_named(grown: SmallIndex) -> None:
    assert grown.manifest is not None
    assert verify_index(grown.path).findings == ()
    newest = segment_directory(0, grown.manifest.shards[0].segments[-1].id)
    vectors = grown.path / newest / VECTORS
    assert isinstance(vectors, StoredPlace)
    before = vectors.read_bytes()
    remove(vectors)
    (finding,) = verify_index(grown.path).findings
    put(vectors, before)
    assert (finding.kind, finding.place) == ("artefact", f"{newest}/{VECTORS}")
    assert CURRENT in list_files(grown.path)
