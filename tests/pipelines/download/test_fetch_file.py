import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.download.fetch_file import DownloadError, StoppedError, Web, parse_md5
from tests.pipelines.pubmed_server import QUICK, PubMedServer, pubmed_file, pubmed_server

pytestmark = pytest.mark.slow

FILE = "baseline/pubmed26n0001.xml.gz"
DIGEST = hashlib.md5(b"x").hexdigest()


@pytest.fixture
def server() -> Iterator[PubMedServer]:
    with pubmed_server(baseline=1, size=200_000) as running:
        yield running


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def web(notes: list[str]) -> Iterator[Web]:
    with Web(QUICK, notes.append) as client:
        yield client


def fetch(web: Web, server: PubMedServer, partial: Path) -> bytes:
    web.fetch(server.url + FILE, partial, lambda done, total: None)
    return partial.read_bytes()


def test_both_checksum_formats_are_parsed(subtests: pytest.Subtests) -> None:
    for text in (
        f"MD5(a.xml.gz)= {DIGEST}\n",
        f"MD5 (a.xml.gz) = {DIGEST}",
        f"{DIGEST}  a.xml.gz\n",
        f"{DIGEST} *a.xml.gz",
        DIGEST.upper(),
    ):
        with subtests.test(text=text):
            assert parse_md5(text, "a.xml.gz") == DIGEST
    for text in ("", "<html>503</html>", f"MD5(b.xml.gz)= {DIGEST}", DIGEST[:-1], f"{DIGEST} b.gz"):
        with (
            subtests.test(text=text),
            pytest.raises(DownloadError, match=r"a\.xml\.gz\.md5: its content is "),
        ):
            parse_md5(text, "a.xml.gz")


def test_fetch_writes_the_whole_file_and_reports_progress(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    steps: list[tuple[int, int | None]] = []
    web.fetch(server.url + FILE, tmp_path / "p", lambda done, total: steps.append((done, total)))
    size = len(server.files[FILE])
    assert (tmp_path / "p").read_bytes() == server.files[FILE]
    assert (steps[0], steps[-1]) == ((0, size), (size, size))


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        (["drop:1000", "drop:500"], ["", "bytes=1000-", "bytes=1500-"]),
        (["drop:1000", "no-range"], ["", "bytes=1000-"]),
        (["chunked"], [""]),
        (["claims:999999999"], ["", "bytes=SIZE-"]),
    ],
)
def test_broken_transfer_resumes_at_its_last_byte(
    web: Web, server: PubMedServer, tmp_path: Path, script: list[str], asked: list[str]
) -> None:
    server.script[FILE] = script
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]
    size = str(len(server.files[FILE]))
    assert server.gets(FILE) == [each.replace("SIZE", size) for each in asked]


@pytest.mark.parametrize("is_changed", [False, True])
def test_partial_file_resumes_only_for_the_same_remote_file(
    web: Web, server: PubMedServer, tmp_path: Path, is_changed: bool
) -> None:
    server.script[FILE] = ["drop:1000", "busy:503:0", "busy:503:0"]
    with pytest.raises(DownloadError, match="given up after 3 tries"):
        fetch(web, server, tmp_path / "p")
    if is_changed:
        server.files[FILE] = pubmed_file(2, 200_000)
    with Web(QUICK, lambda text: None) as later:
        assert fetch(later, server, tmp_path / "p") == server.files[FILE]
    assert server.gets(FILE)[-1] == "bytes=1000-"


def test_partial_file_without_validator_restarts(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    (tmp_path / "p").write_bytes(b"from who knows where")
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]
    assert server.gets(FILE) == [""]


def test_complete_partial_file_is_kept(web: Web, server: PubMedServer, tmp_path: Path) -> None:
    fetch(web, server, tmp_path / "p")
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]
    assert server.gets(FILE) == ["", f"bytes={len(server.files[FILE])}-"]


@pytest.mark.parametrize(
    ("status", "after"),
    [(429, "0"), (500, "0"), (503, "86400"), (503, "Fri, 01 Jan 2100 00:00:00 GMT"), (503, "soon")],
)
def test_retry_after_is_respected_up_to_the_maximum(
    web: Web, server: PubMedServer, tmp_path: Path, notes: list[str], status: int, after: str
) -> None:
    server.script[FILE] = [f"busy:{status}:{after}"]
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]
    assert notes == [f"{server.url}{FILE}: the server answered {status}; trying again in 0 s"]


def test_read_timeout_is_retried(web: Web, server: PubMedServer, tmp_path: Path) -> None:
    server.script[FILE] = ["hang"]
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]


def test_not_found_is_not_retried_but_connection_errors_are(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FILE] = ["drop:10"] * 3
    for url, said in (
        (f"{server.url}nowhere", "nowhere: the server answered 404"),
        (server.url + FILE, r"pubmed26n0001\.xml\.gz: given up after 3 tries"),
        ("http://127.0.0.1:9/x", r"http://127\.0\.0\.1:9/x: given up after 3 tries"),
    ):
        with pytest.raises(DownloadError, match=said):
            web.fetch(url, tmp_path / "p", lambda done, total: None)
    assert server.gets("nowhere") == [""]


def test_stopped_client_sends_no_request(web: Web, server: PubMedServer, tmp_path: Path) -> None:
    web.stop()
    with pytest.raises(StoppedError):
        fetch(web, server, tmp_path / "p")
    assert server.asked == []
