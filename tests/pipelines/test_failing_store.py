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
from tests.pipelines.histories import SMALL, SmallIndex, live
from tests.pipelines.test_stored_index import FILES, seen_from

pytestmark = [pytest.mark.durability, pytest.mark.nightly]

CANNOT_WRITE = r"gs://pubmed/index/.*: the store cannot be written \(.*\); check the bucket, the "
CANNOT_READ = r"gs://pubmed/built/.*: the store cannot be read \(.*\); check the bucket, the "


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
def location(store: FailingStore, tmp_path: Path) -> Iterator[StoredLocation]:
    """Empty location in the store, with a cache for this test only."""
    empty = StoredLocation.at(gcs_url(store.port, "index"), tmp_path / "cache")
    yield empty
    store.heal()
    remove(empty)


@pytest.fixture(scope="module")
def built(store: FailingStore, tmp_path_factory: pytest.TempPathFactory) -> SmallIndex:
    """Index of the first file, which tests must not change."""
    cache = tmp_path_factory.mktemp("built")
    index = small(StoredLocation.at(gcs_url(store.port, "built"), cache))
    index.build(FILES[:1])
    return index


@pytest.fixture
def uncopied(store: FailingStore, built: SmallIndex, tmp_path: Path) -> Iterator[StoredLocation]:
    """The location of `built`, on a machine without local copies."""
    yield StoredLocation.at(built.path.url, tmp_path / "cache")
    store.heal()


def small(location: StoredLocation) -> SmallIndex:
    return SmallIndex(location, "sq8", overrides=SMALL)


def copies(location: StoredLocation) -> dict[str, int]:
    """Return the bytes of the complete files in the cache, by path in the index."""
    sizes = list_files(location.copy) if location.copy.is_dir() else {}
    return {name: size for name, size in sizes.items() if not name.endswith(".lock")}


@pytest.mark.parametrize("fault", ["refuse", "500", "403"])
def test_store_failure_during_a_build_publishes_nothing_and_a_rerun_completes(
    store: FailingStore, location: StoredLocation, fault: Fault
) -> None:
    index = small(location)
    index.stage(FILES[:1])
    store.fail(fault, at=VECTORS)
    with pytest.raises(StorageError, match=CANNOT_WRITE) as caught:
        index.build(FILES[:1])
    store.heal()
    assert "google::cloud" not in str(caught.value)
    assert not [name for name in list_files(location) if name.startswith("versions/")]
    assert current_version(location) is None
    index.build(FILES[:1])
    assert small_read(location, index) == live(FILES[:1]).keys()


def small_read(location: StoredLocation, index: SmallIndex) -> set[int]:
    """Return the live PMIDs that a machine without local copies reads."""
    elsewhere = StoredLocation.at(location.url, location.scratch.parent / "elsewhere")
    return set(seen_from(elsewhere, index).citations(range(1, 100)))


def test_store_failure_during_publishing_keeps_the_previous_version(
    store: FailingStore, location: StoredLocation
) -> None:
    index = small(location)
    before = index.build(FILES[:1])
    store.fail("reset", at=f"name=index%2F{CURRENT}")
    with pytest.raises(StorageError, match=CANNOT_WRITE):
        index.update(FILES[1:])
    store.heal()
    assert current_version(location) == before.version
    assert small_read(location, index) == live(FILES[:1]).keys()
    index.update(FILES[1:])
    assert small_read(location, index) == live(FILES).keys()


@pytest.mark.parametrize("fault", ["refuse", "cut", "500", "403"])
def test_store_failure_during_a_read_leaves_no_partial_copy(
    store: FailingStore, built: SmallIndex, uncopied: StoredLocation, fault: Fault
) -> None:
    index = seen_from(uncopied, built)
    store.fail(fault, at=f"{CITATIONS}?generation")
    with pytest.raises(InputError, match=CANNOT_READ):
        index.readers()
    left = copies(uncopied)
    store.heal()
    assert not [name for name in left if name.endswith(CITATIONS)]
    assert left.items() <= list_files(uncopied).items()
    assert list_files(uncopied.scratch) == {}
    assert set(index.citations(range(1, 100))) == live(FILES[:1]).keys()


@pytest.fixture(scope="module")
def s3() -> Iterator[FailingStore]:
    """S3 server; its client gives up after about 30 tries in 6 seconds."""
    with pytest.MonkeyPatch.context() as environment, s3_server(environment):
        port = int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2])
        with failing_store(port) as proxy:
            yield proxy


def test_failed_multipart_upload_leaves_no_object(s3: FailingStore, tmp_path: Path) -> None:
    url = f"s3://{BUCKET}/index?endpoint_override=127.0.0.1:{s3.port}&scheme=http"
    location = StoredLocation.at(url, tmp_path / "cache")
    (tmp_path / "large").write_bytes(Random(1).randbytes(12_000_000))
    s3.fail("403", at="partNumber=2")
    with pytest.raises(
        StorageError,
        match=r"s3://pubmed/index/large.*: the store cannot be written .*ACCESS_DENIED",
    ):
        upload(tmp_path / "large", location / "large")
    s3.heal()
    assert list_files(location) == {}
