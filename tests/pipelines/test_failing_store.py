"""Failures of an object store: nothing is published and a rerun completes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from cluster.errors import InputError, StorageError
from cluster.index.layout import CITATIONS, CURRENT, VECTORS
from cluster.index.manifest import current_version
from cluster.storage.locations import StoredLocation, list_files, remove, upload
from tests.failing_store import FailingStore, Fault, failing_store
from tests.gcs_server import gcs_server, gcs_url
from tests.object_store import BUCKET, s3_server
from tests.pipelines.histories import SmallIndex, live

pytestmark = [pytest.mark.durability, pytest.mark.nightly]

FILES = [
    [(n, text) for n, text in enumerate(["aspirin", "heparin", "warfarin", "insulin", "iron"], 1)],
    [(2, "heparin again"), (3, None), (6, "copper and aspirin"), (99, None), (1, None)],
]
# Only one BM25 side, which needs the same kinds of requests but half as many objects.
SMALL = ("index.bm25_over=[citations]",)
CANNOT_WRITE = r"gs://pubmed/index/.*: the store cannot be written \(.*\); check the bucket, the "
CANNOT_READ = r"gs://pubmed/index/.*: the store cannot be read \(.*\); check the bucket, the "


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingStore]:
    """Google Cloud Storage server whose client gives up early."""
    folder = tmp_path_factory.mktemp("account")
    with (
        pytest.MonkeyPatch.context() as environment,
        gcs_server(environment, folder) as port,
        failing_store(port) as proxy,
    ):
        yield proxy


@pytest.fixture
def place(store: FailingStore, tmp_path: Path) -> Iterator[StoredLocation]:
    """Empty place in the store, with a cache for this test only."""
    place = StoredLocation.at(gcs_url(store.port, "index"), tmp_path / "cache")
    yield place
    store.heal()
    remove(place)


def small(place: StoredLocation) -> SmallIndex:
    return SmallIndex(place, "sq8", overrides=SMALL)


def copies(place: StoredLocation) -> dict[str, int]:
    """Return the bytes of the complete files in the cache, by path in the index."""
    sizes = list_files(place.copy) if place.copy.is_dir() else {}
    return {name: size for name, size in sizes.items() if not name.endswith(".lock")}


@pytest.mark.parametrize("fault", ["refuse", "500", "403"])
def test_store_failure_during_a_build_publishes_nothing_and_a_rerun_completes(
    store: FailingStore, place: StoredLocation, fault: Fault
) -> None:
    index = small(place)
    index.stage(FILES[:1])
    store.fail(fault, at=VECTORS)
    with pytest.raises(StorageError, match=CANNOT_WRITE) as caught:
        index.build(FILES[:1])
    store.heal()
    assert "google::cloud" not in str(caught.value)
    assert not [name for name in list_files(place) if name.startswith("versions/")]
    assert current_version(place) is None
    index.build(FILES[:1])
    assert small_read(place, index) == live(FILES[:1]).keys()


def small_read(place: StoredLocation, index: SmallIndex) -> set[int]:
    """Return the live PMIDs that a machine without local copies reads."""
    elsewhere = StoredLocation.at(place.url, place.scratch.parent / "elsewhere")
    seen = SmallIndex(elsewhere, "sq8", manifest=index.manifest, overrides=SMALL)
    return set(seen.citations(range(1, 100)))


def test_store_failure_during_publishing_keeps_the_previous_version(
    store: FailingStore, place: StoredLocation
) -> None:
    index = small(place)
    before = index.build(FILES[:1])
    store.fail("reset", at=f"name=index%2F{CURRENT}")
    with pytest.raises(StorageError, match=CANNOT_WRITE):
        index.update(FILES[1:])
    store.heal()
    assert current_version(place) == before.version
    assert small_read(place, index) == live(FILES[:1]).keys()
    index.update(FILES[1:])
    assert small_read(place, index) == live(FILES).keys()


@pytest.mark.parametrize("fault", ["refuse", "cut", "500", "403"])
def test_store_failure_during_a_read_leaves_no_partial_copy(
    store: FailingStore, place: StoredLocation, fault: Fault
) -> None:
    index = small(place)
    manifest = index.build(FILES[:1])
    store.fail(fault, at=f"{CITATIONS}?generation")
    with pytest.raises(InputError, match=CANNOT_READ):
        index.readers()
    left = copies(place)
    store.heal()
    assert not [name for name in left if name.endswith(CITATIONS)]
    assert left.items() <= list_files(place).items()
    assert list_files(place.scratch) == {}
    assert set(index.citations(range(1, 100))) == live(FILES[:1]).keys()
    assert index.manifest == manifest


@pytest.fixture(scope="module")
def s3() -> Iterator[FailingStore]:
    """S3 server; its client gives up after about 30 tries in 6 seconds."""
    with pytest.MonkeyPatch.context() as environment, s3_server(environment):
        port = int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2])
        with failing_store(port) as proxy:
            yield proxy


def test_failed_multipart_upload_leaves_no_object(s3: FailingStore, tmp_path: Path) -> None:
    url = f"s3://{BUCKET}/index?endpoint_override=127.0.0.1:{s3.port}&scheme=http"
    place = StoredLocation.at(url, tmp_path / "cache")
    (tmp_path / "large").write_bytes(Random(1).randbytes(12_000_000))
    s3.fail("403", at="partNumber=2")
    with pytest.raises(
        StorageError,
        match=r"s3://pubmed/index/large.*: the store cannot be written .*ACCESS_DENIED",
    ):
        upload(tmp_path / "large", place / "large")
    s3.heal()
    assert list_files(place) == {}
