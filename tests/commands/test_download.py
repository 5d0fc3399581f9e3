import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from cluster.errors import InputError
from commands.download import download
from tests.pipelines.pubmed_server import PubMedServer, pubmed_server
from tests.serve.eutils_server import EUtils, eutils

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FIRST = "baseline/pubmed26n0001.xml.gz"


@pytest.fixture
def server() -> Iterator[PubMedServer]:
    with pubmed_server(baseline=2, updates=2, size=100_000) as running:
        yield running


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "commands.cli", "download", *map(str, arguments)]


def citeray_download(*arguments: object) -> Result:
    """Run a command in this process, because a new one takes seconds to start."""
    app = typer.Typer()
    app.command()(download)
    return CliRunner().invoke(app, [str(a) for a in arguments])


def names(folder: Path) -> list[str]:
    return sorted(p.name[9:13] for p in folder.rglob("*.xml.gz"))


def test_download_fetches_files_once(server: PubMedServer, tmp_path: Path) -> None:
    first = citeray_download(tmp_path, "--base-url", server.url)
    assert first.exit_code == 0, first.stderr
    assert "4 files fetched" in first.stdout
    assert "pubmed26n0001.xml.gz: 0.1 MB" in first.stderr
    again = citeray_download(tmp_path, "--base-url", server.url)
    assert (again.exit_code, names(tmp_path)) == (0, ["0001", "0002", "0003", "0004"])
    assert "0 files fetched (0.0 MB, " in again.stdout
    assert "4 there already" in again.stdout


def test_failed_file_is_named_and_exits_1(server: PubMedServer, tmp_path: Path) -> None:
    del server.files[f"{FIRST}.md5"]
    done = citeray_download(tmp_path, "--base-url", server.url, "--json")
    assert done.exit_code == 1
    files = json.loads(done.stdout)["files"]
    assert [f["state"] for f in files] == ["failed", "fetched", "fetched", "fetched"]
    assert f"failed: {server.url}{FIRST}.md5: the server answered 404" in done.stderr
    assert "1 of 4 files are not there; run the same command again" in done.stderr


def test_bad_download_option_is_refused(server: PubMedServer, tmp_path: Path) -> None:
    for options in (["--files", "0"], ["--concurrent", "99"], ["--since", "-1"]):
        done = citeray_download(tmp_path, *options)
        assert (done.exit_code, options[0] in done.stderr) == (2, True)
    elsewhere = "need a local folder of their own; give one"
    for arguments, said in [
        (["x", "--base-url", "ftp://example.org"], "must begin with http:// or https://"),
        (["ftp://example.org/x"], "use a path, file://, s3:// or gs://"),
        (["--query", "asthma[mh]"], elsewhere),
        (["s3://bucket/folder", "--query", "asthma[mh]"], elsewhere),
    ]:
        done = citeray_download("--base-url", server.url, *arguments)
        assert isinstance(done.exception, InputError)
        assert said in str(done.exception)


@pytest.mark.process
def test_killed_download_resumes_without_partial_files(
    server: PubMedServer, tmp_path: Path
) -> None:
    server.script[FIRST] = ["slow"]
    started = command(tmp_path, "--base-url", server.url, "--files", 1)
    process = subprocess.Popen(
        started, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    partial = tmp_path / f"{FIRST}.partial"
    deadline = time.monotonic() + 60
    while not (partial.is_file() and partial.stat().st_size):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert names(tmp_path) == []

    done = citeray_download(*started[4:])
    assert done.exit_code == 0, done.stderr
    assert server.gets(FIRST)[-1].startswith("bytes=")
    assert (tmp_path / FIRST).read_bytes() == server.files[FIRST]
    assert not partial.exists()


def test_query_records_require_their_own_folder(tmp_path: Path) -> None:
    with eutils(EUtils()) as server:
        server.start_over(dict.fromkeys((3, 1, 2), date(2024, 5, 1)))
        entrez = [f"entrez.base_url={server.url}", f"entrez.cache={tmp_path / 'cache'}"]
        options = [part for one in entrez for part in ("--set", one)]
        asked = (tmp_path / "q", "--query", "asthma[mh]", *options)
        first, again = citeray_download(*asked), citeray_download(*asked, "--json")
    assert "3 records fetched; files: 1 written, 0 there already" in first.stdout
    error = json.loads(again.stdout)
    assert (error["found"], error["records"], error["present"]) == (3, 0, 1)
