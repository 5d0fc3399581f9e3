"""Download PubMed files to an object store, and find and read them there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyarrow import fs

from cluster.errors import InputError
from cluster.storage.object_store import StoredFile
from cluster.storage.whole_files import sha256_of
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.indexing.staging.read_source import read_source
from pipelines.indexing.staging.stage_citations import complete_account, read_account
from tests.object_store import BUCKET, s3_server
from tests.pipelines.download.test_download_files import download
from tests.pipelines.pubmed_server import PubMedServer, pubmed_file, pubmed_server
from tests.pipelines.staging import SPLITTER

pytestmark = pytest.mark.slow

PLACE = f"s3://{BUCKET}/kept"
FIRST, UPDATE = "baseline/pubmed26n0001.xml.gz", "updatefiles/pubmed26n0003.xml.gz"


@pytest.fixture(scope="module")
def running() -> Iterator[fs.S3FileSystem]:
    with pytest.MonkeyPatch.context() as environment, s3_server(environment) as client:
        yield client


@pytest.fixture
def s3(running: fs.S3FileSystem) -> Iterator[fs.S3FileSystem]:
    yield running
    running.delete_dir_contents(BUCKET)


@pytest.fixture
def server() -> Iterator[PubMedServer]:
    with pubmed_server(baseline=2, updates=1, size=10_000) as server:
        yield server


def put(s3: fs.S3FileSystem, path: str, data: bytes) -> str:
    with s3.open_output_stream(f"{BUCKET}/kept/{path}", compression=None) as sink:
        sink.write(data)
    return f"{PLACE}/{path}"


def held(s3: fs.S3FileSystem) -> dict[str, bytes]:
    found = s3.get_file_info(fs.FileSelector(f"{BUCKET}/kept", recursive=True))
    return {
        f.path.removeprefix(f"{BUCKET}/kept/"): s3.open_input_file(f.path).read()
        for f in found
        if f.type == fs.FileType.File
    }


def test_missing_and_changed_files_are_stored_with_their_checksums_only(
    s3: fs.S3FileSystem, server: PubMedServer
) -> None:
    server.add(FIRST, Random(1).randbytes(12_000_000))  # uploaded in several parts
    outcomes = download(server, PLACE)
    assert [o.state for o in outcomes.values()] == ["fetched"] * 3
    assert held(s3) == server.files
    server.add(UPDATE, pubmed_file(7))
    s3.delete_file(f"{BUCKET}/kept/{FIRST}.md5")
    states = [o.state for o in download(server, PLACE).values()]
    assert states == ["fetched", "present", "fetched"]
    s3.delete_file(f"{BUCKET}/kept/{UPDATE}")
    assert download(server, PLACE)[UPDATE].state == "fetched"
    assert held(s3) == server.files
    # The files of the folder are sources in the order of their numbers.
    expected = [f"{PLACE}/baseline/pubmed26n000{n}.xml.gz" for n in (1, 2)]
    assert [str(f) for f in find_sources([PLACE])] == [*expected, f"{PLACE}/{UPDATE}"]


def test_objects_globs_and_local_files_can_be_combined_as_sources(
    s3: fs.S3FileSystem, tmp_path: Path
) -> None:
    urls = [put(s3, f"n{n}.xml", pubmed_file(n)) for n in (10, 9, 11)]
    (tmp_path / "n2.xml").write_bytes(pubmed_file(2))
    found = find_sources([urls[0], f"{PLACE}/*9*", str(tmp_path)])
    assert [f.name for f in found] == ["n2.xml", "n9.xml", "n10.xml"]
    url = put(s3, "n2.xml", pubmed_file(2))
    with pytest.raises(InputError, match=r"two sources are named n2\.xml: .* and s3://"):
        find_sources([str(tmp_path), url])


def test_account_of_a_stored_source_detects_a_change(s3: fs.S3FileSystem, tmp_path: Path) -> None:
    data = pubmed_file(5, size=1_500_000)
    file = StoredFile(put(s3, "n5.xml.gz", data))
    assert [t["pmid"].to_pylist() for t in read_source(file, tmp_path, SPLITTER)] == [[5]]
    account = read_account(tmp_path)
    assert account is not None
    assert (account.error, account.bytes, account.sha256) == ("", len(data), sha256_of(file))
    put(s3, "n5.xml.gz", pubmed_file(6, size=10))
    assert complete_account(tmp_path, file) is None
    # An object that vanishes before it is read is recorded.
    s3.delete_file(f"{BUCKET}/kept/n5.xml.gz")
    assert list(read_source(file, tmp_path, SPLITTER)) == []
    account = read_account(tmp_path)
    assert account is not None
    assert "n5.xml.gz: there is no such object" in account.error
