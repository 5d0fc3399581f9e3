from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from filelock import FileLock

from cluster.errors import CiteRayError
from pipelines.download.download_files import Outcome, download_files
from pipelines.download.fetch_file import Web
from pipelines.download.list_files import list_files
from tests.pipelines.pubmed_server import QUICK, PubMedServer, md5_line, pubmed_server

pytestmark = pytest.mark.slow

FIRST, SECOND, THIRD = (f"baseline/pubmed26n000{n}.xml.gz" for n in (1, 2, 3))
UPDATE = "updatefiles/pubmed26n0004.xml.gz"
FILES = (FIRST, SECOND, THIRD, UPDATE)


@pytest.fixture
def server() -> Iterator[PubMedServer]:
    with pubmed_server(baseline=3, updates=1, size=5000) as running:
        yield running


def download(
    server: PubMedServer, destination: object, observer: Mock | None = None, at_once: int = 2
) -> dict[str, Outcome]:
    observer = observer or Mock()
    with Web(QUICK, observer.note) as web:
        files = list_files(web.read_text, server.url)
        outcomes = download_files(files, str(destination), web, observer, at_once)
    return {f"{o.folder}/{o.name}": o for o in outcomes}


def kept(destination: Path) -> dict[str, bytes]:
    """Return the content of the files and their checksums, by path."""
    return {str(p.relative_to(destination)): p.read_bytes() for p in destination.rglob("*.xml.gz*")}


def test_missing_and_damaged_files_are_fetched_with_their_checksums(
    server: PubMedServer, tmp_path: Path
) -> None:
    outcomes = download(server, tmp_path)
    assert [o.state for o in outcomes.values()] == ["fetched"] * 4
    assert kept(tmp_path) == server.files
    (tmp_path / FIRST).write_bytes(server.files[FIRST][:-1] + b"?")
    (tmp_path / SECOND).unlink()
    # A manually copied file has no checksum beside it.
    (tmp_path / f"{THIRD}.md5").unlink()
    server.asked.clear()
    outcomes = download(server, tmp_path)
    assert [o.state for o in outcomes.values()] == ["fetched", "fetched", "present", "present"]
    assert [path for path in FILES if server.gets(path)] == [FIRST, SECOND]
    assert kept(tmp_path) == server.files


def test_transfer_with_a_wrong_md5_is_retried_once_and_fails_alone(
    server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FIRST], server.script[SECOND] = ["wrong"], ["wrong", "wrong"]
    observer = Mock()
    outcomes = download(server, tmp_path, observer)
    assert [o.state for o in outcomes.values()] == ["fetched", "failed", "fetched", "fetched"]
    notes = [call.args[0] for call in observer.note.call_args_list]
    assert sum("pubmed26n0001.xml.gz: its md5 is " in note for note in notes) == 1
    assert "pubmed26n0002.xml.gz: its md5 is" in outcomes[SECOND].error
    assert kept(tmp_path) == {p: data for p, data in server.files.items() if SECOND not in p}


def test_failed_download_keeps_the_previous_file(server: PubMedServer, tmp_path: Path) -> None:
    download(server, tmp_path)
    before = (tmp_path / UPDATE).read_bytes()
    server.files[f"{UPDATE}.md5"] = md5_line("pubmed26n0004.xml.gz", b"what is not there")
    assert download(server, tmp_path)[UPDATE].state == "failed"
    assert (tmp_path / UPDATE).read_bytes() == before


@pytest.mark.parametrize("checksum", [None, b"<html>maintenance</html>", b"x" * 5000])
def test_checksum_is_required(server: PubMedServer, tmp_path: Path, checksum: bytes | None) -> None:
    del server.files[f"{THIRD}.md5"]
    if checksum is not None:
        server.files[f"{THIRD}.md5"] = checksum
    outcomes = download(server, tmp_path)
    assert outcomes[THIRD].state == "failed"
    assert "pubmed26n0003.xml.gz.md5: " in outcomes[THIRD].error
    assert kept(tmp_path) == {p: data for p, data in server.files.items() if THIRD not in p}


def test_concurrent_downloads_are_limited(server: PubMedServer, tmp_path: Path) -> None:
    for path in FILES:
        server.script[path] = ["slow"]
    download(server, tmp_path, at_once=2)
    assert server.most_together == 2


def test_insufficient_disk_space_is_refused_before_downloading(
    server: PubMedServer, tmp_path: Path
) -> None:
    server.sizes[FIRST] = 10**16
    with pytest.raises(CiteRayError, match=r"needs 10,000,000\.\d GB and .* GB are free.*--files"):
        download(server, tmp_path)
    assert kept(tmp_path) == {}
    assert not any(server.gets(path) for path in FILES)


def test_second_download_into_a_folder_is_refused(server: PubMedServer, tmp_path: Path) -> None:
    with (
        FileLock(tmp_path / ".download.lock"),
        pytest.raises(CiteRayError, match="another download writes there"),
    ):
        download(server, tmp_path)


def test_unwritable_destination_is_named(server: PubMedServer, tmp_path: Path) -> None:
    (tmp_path / FIRST).mkdir(parents=True)
    outcomes = download(server, tmp_path)
    assert "pubmed26n0001.xml.gz: it cannot be kept" in outcomes[FIRST].error
    assert [o.state for o in outcomes.values()].count("fetched") == 3
