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


@pytest.mark.parametrize(
    "text",
    [
        f"MD5(a.xml.gz)= {DIGEST}\n",
        f"MD5 (a.xml.gz) = {DIGEST}",
        f"{DIGEST}  a.xml.gz\n",
        f"{DIGEST} *a.xml.gz",
        DIGEST.upper(),
    ],
)
def test_each_form_of_a_checksum_is_read(text: str) -> None:
    assert parse_md5(text, "a.xml.gz") == DIGEST


@pytest.mark.parametrize(
    "text", ["", "<html>503</html>", f"MD5(b.xml.gz)= {DIGEST}", DIGEST[:-1], f"{DIGEST} b.xml.gz"]
)
def test_anything_else_is_no_checksum_of_the_file(text: str) -> None:
    with pytest.raises(DownloadError, match=r"a\.xml\.gz\.md5: it says "):
        parse_md5(text, "a.xml.gz")


def test_a_file_comes_whole_and_tells_how_far_it_is(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    steps: list[tuple[int, int | None]] = []
    web.fetch(server.url + FILE, tmp_path / "p", lambda done, total: steps.append((done, total)))
    size = len(server.files[FILE])
    assert (tmp_path / "p").read_bytes() == server.files[FILE]
    assert (steps[0], steps[-1]) == ((0, size), (size, size))


def test_a_broken_transfer_goes_on_at_the_byte_where_it_broke(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FILE] = ["drop:1000", "drop:500"]
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]
    assert server.gets(FILE) == ["", "bytes=1000-", "bytes=1500-"]


def test_what_an_earlier_run_left_is_gone_on_with(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FILE] = ["drop:1000", "busy:503:0", "busy:503:0"]
    with pytest.raises(DownloadError, match="given up after 3 tries"):
        fetch(web, server, tmp_path / "p")
    with Web(QUICK, lambda text: None) as later:
        assert fetch(later, server, tmp_path / "p") == server.files[FILE]
    assert server.gets(FILE)[-1] == "bytes=1000-"


def test_a_server_that_ignores_ranges_sends_it_all_again(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FILE] = ["drop:1000", "no-range"]
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]


def test_a_file_that_changed_between_tries_is_not_spliced(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FILE] = ["drop:1000", "busy:503:0", "busy:503:0"]
    with pytest.raises(DownloadError):
        fetch(web, server, tmp_path / "p")
    server.files[FILE] = pubmed_file(2, 200_000)
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]


def test_without_its_validator_a_partial_file_is_begun_again(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    (tmp_path / "p").write_bytes(b"from who knows where")
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]
    assert server.gets(FILE) == [""]


def test_a_partial_file_that_is_whole_is_not_sent_again(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    fetch(web, server, tmp_path / "p")
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]
    assert server.gets(FILE) == ["", f"bytes={len(server.files[FILE])}-"]


def test_a_file_of_no_announced_length_comes_whole(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FILE] = ["chunked"]
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_when_it_said(
    web: Web, server: PubMedServer, tmp_path: Path, notes: list[str], status: int
) -> None:
    server.script[FILE] = [f"busy:{status}:0"]
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]
    assert notes == [f"{server.url}{FILE}: the server answered {status}; trying again in 0 s"]


@pytest.mark.parametrize("after", ["86400", "Fri, 01 Jan 2100 00:00:00 GMT", "soon"])
def test_no_server_can_make_it_wait_longer_than_the_longest(
    web: Web, server: PubMedServer, tmp_path: Path, notes: list[str], after: str
) -> None:
    server.script[FILE] = [f"busy:503:{after}"]
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]
    assert "trying again in 0 s" in notes[0]


@pytest.mark.slow
def test_a_silent_server_is_left_and_asked_again(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FILE] = ["hang"]
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]


def test_a_server_that_announces_more_than_it_has_is_asked_for_the_rest(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FILE] = ["claims:999999999"]
    assert fetch(web, server, tmp_path / "p") == server.files[FILE]
    assert server.gets(FILE) == ["", f"bytes={len(server.files[FILE])}-"]


def test_a_server_that_always_breaks_off_is_given_up_by_name(
    web: Web, server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FILE] = ["drop:10"] * 3
    with pytest.raises(DownloadError, match=r"pubmed26n0001\.xml\.gz: given up after 3 tries"):
        fetch(web, server, tmp_path / "p")


def test_a_missing_file_is_asked_for_once(web: Web, server: PubMedServer, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"nowhere: the server answered 404"):
        web.fetch(server.url + "nowhere", tmp_path / "p", lambda done, total: None)
    assert server.gets("nowhere") == [""]


def test_no_server_at_all_is_named_after_the_tries(web: Web, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"http://127\.0\.0\.1:9/x: given up after 3 tries"):
        web.fetch("http://127.0.0.1:9/x", tmp_path / "p", lambda done, total: None)


def test_text_that_is_too_long_is_refused(web: Web, server: PubMedServer) -> None:
    with pytest.raises(DownloadError, match="longer than 1000 bytes"):
        web.read_text(server.url + FILE, 1000)


def test_a_stopped_client_asks_nothing_more(web: Web, server: PubMedServer, tmp_path: Path) -> None:
    web.stop()
    with pytest.raises(StoppedError):
        fetch(web, server, tmp_path / "p")
    assert server.asked == []
