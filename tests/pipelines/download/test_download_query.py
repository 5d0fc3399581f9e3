from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError, PubMedError
from cluster.pubmed.parse_articles import parse_stream
from cluster.records import Citation
from pipelines.download.download_query import FOUND, Downloaded, download_query
from tests.serve.eutils_server import EUtils, Reply, eutils
from tests.serve.pubmed_online import make

DAY = date(2024, 5, 1)
QUERY = "neurology[mh] AND 2015:2024[dp]"


@pytest.fixture
def server() -> Iterator[EUtils]:
    with eutils(EUtils()) as running:
        running.start_over(dict.fromkeys((5, 3, 8, 1, 9, 7, 2), DAY))
        yield running


def download(server: EUtils, folder: Path, query: str = QUERY, **options: Any) -> Downloaded:
    said: list[str] = []
    pubmed = make(server, folder.parent)
    return asyncio.run(download_query(pubmed, query, folder, said.append, **options))


def held(path: Path) -> list[int]:
    with gzip.open(path) as stream:
        return [r.pmid for r in parse_stream(stream, path.name) if isinstance(r, Citation)]


def test_query_records_are_written_as_sources_for_a_build(server: EUtils, tmp_path: Path) -> None:
    done = download(server, tmp_path / "q", part=3)
    names = [f"query{date.today():%y}n000{n}.xml.gz" for n in (1, 2, 3)]
    assert (done.files, done.found, done.records, done.missing) == (tuple(names), 7, 7, 0)
    assert [held(tmp_path / "q" / name) for name in names] == [[1, 2, 3], [5, 7, 8], [9]]
    assert json.loads((tmp_path / "q" / FOUND).read_text())["query"] == QUERY
    assert {form["term"] for form in server.requests if "term" in form} == {QUERY}


def test_interrupted_query_download_resumes_without_a_new_search(
    server: EUtils, tmp_path: Path
) -> None:
    whole = download(server, tmp_path / "whole", part=3)
    folder = tmp_path / "q"
    server.script[:] = []
    count, found, first = (_answer(server, n) for n in range(3))
    server.script[:] = [count, found, first, Reply("gone", 500)]
    server.for_ever = True
    with pytest.raises(PubMedError):
        download(server, folder, part=3)
    server.script[:], server.for_ever = [], False
    assert [p.name for p in sorted(folder.glob("*.gz"))] == [whole.files[0]]
    # A record added since then is not part of this download.
    server.entered[4] = DAY
    server.requests.clear()
    done = download(server, folder, part=3)
    assert (done.found, done.present, done.records) == (7, 1, 4)
    assert {form["utility"] for form in server.requests} == {"efetch"}
    for name in whole.files:
        assert held(folder / name) == held(tmp_path / "whole" / name)


def _answer(server: EUtils, number: int) -> Reply:
    """Return the server's successive responses to the requests of a download."""
    pmids = sorted(server.entered)
    if number == 2:
        return Reply(server.records(pmids[:3], []))
    found = {"count": "7", "idlist": [str(pmid) for pmid in pmids] if number else []}
    return Reply(json.dumps({"esearchresult": found}))


def test_folder_of_another_query_is_refused(server: EUtils, tmp_path: Path) -> None:
    download(server, tmp_path / "q")
    with pytest.raises(InputError, match=r"this folder holds what 'neurology.* found"):
        download(server, tmp_path / "q", "cardiology[mh]")
    with pytest.raises(InputError, match="this folder holds what"):
        download(server, tmp_path / "q", limit=3)
    assert download(server, tmp_path / "few", limit=2).found == 2
    (tmp_path / "q" / FOUND).write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="not written by this command"):
        download(server, tmp_path / "q")


def test_query_without_results_writes_nothing(server: EUtils, tmp_path: Path) -> None:
    server.start_over({})
    with pytest.raises(InputError, match="PubMed finds nothing"):
        download(server, tmp_path / "q")
    assert list((tmp_path / "q").iterdir()) == []
