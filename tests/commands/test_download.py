import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from tests.commands.run_here import run_here
from tests.pipelines.pubmed_server import PubMedServer, pubmed_server
from tests.serve.eutils_server import EUtils, eutils

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[PubMedServer]:
    with pubmed_server(baseline=2, updates=2, size=100_000) as running:
        yield running


def names(folder: Path) -> list[str]:
    return sorted(p.name[9:13] for p in folder.rglob("*.xml.gz"))


def test_download_fetches_files_once(server: PubMedServer, tmp_path: Path) -> None:
    code, said, progress = run_here("download", tmp_path, "--base-url", server.url)
    assert code == 0, progress
    assert "4 files fetched" in said
    assert "pubmed26n0001.xml.gz: 0.1 MB" in progress
    code, said, _ = run_here("download", tmp_path, "--base-url", server.url)
    assert (code, names(tmp_path)) == (0, ["0001", "0002", "0003", "0004"])
    assert "0 files fetched (0.0 MB, " in said
    assert "4 there already" in said


def test_failed_file_is_named_and_exits_1(server: PubMedServer, tmp_path: Path) -> None:
    first = "baseline/pubmed26n0001.xml.gz.md5"
    del server.files[first]
    code, reply, said = run_here("download", tmp_path, "--base-url", server.url, "--json")
    assert code == 1
    files = json.loads(reply)["files"]
    assert [f["state"] for f in files] == ["failed", "fetched", "fetched", "fetched"]
    assert f"failed: {server.url}{first}: the server answered 404" in said
    assert "1 of 4 files are not there; run the same command again" in said


def test_bad_download_option_is_refused(server: PubMedServer, tmp_path: Path) -> None:
    elsewhere = "need a local folder of their own; give one"
    for arguments, said in [
        ([tmp_path, "--files", "0"], "--files"),
        ([tmp_path, "--concurrent", "99"], "--concurrent"),
        ([tmp_path, "--since", "-1"], "--since"),
        (["x", "--base-url", "ftp://example.org"], "must begin with http:// or https://"),
        (["ftp://example.org/x"], "use a path, file://, s3:// or gs://"),
        (["--query", "asthma[mh]"], elsewhere),
        (["s3://bucket/folder", "--query", "asthma[mh]"], elsewhere),
    ]:
        code, _, message = run_here("download", "--base-url", server.url, *arguments)
        assert (code, said in message) == (2, True)


def test_query_records_require_their_own_folder(tmp_path: Path) -> None:
    with eutils(EUtils()) as server:
        server.start_over(dict.fromkeys((3, 1, 2), date(2024, 5, 1)))
        entrez = [f"entrez.base_url={server.url}", f"entrez.cache={tmp_path / 'cache'}"]
        options = [part for one in entrez for part in ("--set", one)]
        asked = ("download", tmp_path / "q", "--query", "asthma[mh]", *options)
        (_, said, _), (_, again, _) = run_here(*asked), run_here(*asked, "--json")
    assert "3 records fetched; files: 1 written, 0 there already" in said
    found = json.loads(again)
    assert (found["found"], found["records"], found["present"]) == (3, 0, 1)
