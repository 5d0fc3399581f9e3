"""Boolean search over HTTP, and by `citeray search --boolean` against the endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import rispy

from cluster.records import MeshHeading
from serve.pipeline import boolean_reply
from tests.commands.run_here import run_here
from tests.serve.api import client_of
from tests.serve.http.workbench.test_reference_tools import calls
from tests.serve.problem import assert_refused
from tests.serve.service import SmallService
from tests.small_index import citation

FEVER = (MeshHeading("D005334", "Fever", True),)
CORPUS = [
    *(citation(n, "Metformin lowers glucose.", f"Trial {n}", year=2000) for n in range(1, 8)),
    citation(8, "Metformin in mice.", "Newest", year=2024, month=5, mesh=FEVER, journal="BMJ"),
    citation(9, "Warfarin.", "Other", year=2025),
]
NEWEST_FIRST = [8, 7, 6, 5, 4, 3, 2, 1]


@pytest.fixture(scope="module")
def service() -> SmallService:
    return SmallService(citations=CORPUS)


def post(url: str, query: str, path: str = "", **fields: Any) -> httpx.Response:
    asked = {"query": query, **fields}
    return httpx.post(f"{url}/v1/search/boolean{path}", json=asked, timeout=60)


def test_all_matching_citations_are_counted_and_paged_newest_first(url: str) -> None:
    found = post(url, "metformin[tiab] AND (glucose[ab] OR D005334[mh])", limit=3).json()
    assert found["total"] == 8
    assert [c["pmid"] for c in found["citations"]] == [8, 7, 6]
    assert found["citations"][0]["journal"] == "BMJ"
    assert found["query"] == "metformin[tiab] AND (glucose[ab] OR D005334[mh:noexp])"
    assert found["notes"] == ["[mh] is read as [mh:noexp]: narrower headings are not included"]
    assert (found["index_version"], found["coverage"], found["degraded"]) == ("v000001", "2/2", [])
    later = post(url, "metformin[tiab]", limit=3, offset=6).json()
    assert [c["pmid"] for c in later["citations"]] == [2, 1]
    assert post(url, "metformin[tiab]", offset=50).json()["citations"] == []


@pytest.mark.slow
def test_all_matching_citations_are_exported_in_parts(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boolean_reply, "PART", 3)
    for form in ("ris", "pmids"):
        reply = post(url, "metformin", "/export", format=form)
        assert reply.headers["X-Total-Count"] == "8"
        text = reply.text.replace("\r\n", "\n")
        records = rispy.loads(text) if form == "ris" else []
        pmids = [record["accession_number"] for record in records] or text.split()
        assert list(map(int, pmids)) == NEWEST_FIRST, form
    assert post(url, "nothing", "/export", format="csl-json").json() == []


@pytest.mark.slow
def test_models_search_by_the_mcp_tool(url: str) -> None:
    reply, refused = calls(
        url,
        ("boolean_search", {"query": "metformin[tiab]", "limit": 2}),
        ("boolean_search", {"query": "Boston[ad]"}),
    )
    assert [c["pmid"] for c in reply.structured_content["citations"]] == [8, 7]
    assert "8 citations match metformin[tiab]\nPMID 8: Newest (BMJ 2024)" in reply.content[0].text
    assert refused.is_error


@pytest.mark.slow
def test_queries_that_cannot_be_applied_are_422(url: str) -> None:
    for query, said in [
        ("Boston[ad]", "query, Boston[ad]: [ad] cannot be applied here; the supported tags are"),
        ("Metformin[mh]", "query, Metformin[mh]: not a MeSH heading that this index knows"),
        ("metformin[tiab] AND", "query: AND has no term after it"),
        ("x" * 20_001, "query: must have at most 20000 characters"),
    ]:
        assert_refused(post(url, query), said)
        assert_refused(post(url, query, "/export"), said)
    assert_refused(post(url, "a", limit=101), "limit: must be at most 100")


@pytest.mark.slow
def test_a_lost_shard_is_stated_and_prevents_an_export() -> None:
    client = client_of(SmallService(citations=CORPUS, broken=("shard-1",)))
    found = client.post("/v1/search/boolean", json={"query": "metformin[tiab]"}).json()
    assert 0 < found["total"] < 8
    assert found["coverage"] == "1/2"
    assert found["degraded"] == ["boolean: failed, shard 1 left out"]
    refused = client.post("/v1/search/boolean/export", json={"query": "metformin[tiab]"})
    assert refused.status_code == 503


@pytest.mark.slow
def test_the_command_lists_and_exports_matching_citations(url: str, tmp_path: Path) -> None:
    place = urlsplit(url)
    endpoint = (f"--set=serve.host={place.hostname}", f"--set=serve.port={place.port}")
    file = tmp_path / "all.txt"
    asked = ("search", "--boolean", "metformin", "--limit", 2, "-o", file, "--format", "pmids")
    code, out, err = run_here(*asked, *endpoint)
    assert code == 0, err
    assert out.startswith("8 articles match metformin[tiab]\nNote: words without a field tag")
    assert "  1. 8 Newest (BMJ, 2024" in out
    assert "  2. 7 Trial 7 (2000" in out
    assert "3. 6" not in out
    assert f"8 citations -> {file}" in err.replace("\n", " ").replace("  ", " ")
    assert file.read_text().split() == list(map(str, NEWEST_FIRST))
    for name, begin in (("b.TXT", "8\n"), ("b.csv", "\ufeffpmid,"), ("b.bib", "@"), ("b.x", "TY")):
        run_here("search", "--boolean", "metformin", "-o", tmp_path / name, *endpoint)
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(begin)
    code, out, err = run_here("search", "--boolean", "Boston[ad]", *endpoint)
    assert (code, out) == (2, "")
    assert "[ad] cannot be applied here" in err.replace("\n", " ")
    code, _, err = run_here("search", "--boolean", "x", "--sort", "date", *endpoint)
    assert (code, "write limits as terms" in err) == (2, True)
    assert run_here("search", "x", "-o", file, *endpoint)[0] == 2
