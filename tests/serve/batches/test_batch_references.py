from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
import rispy
from docx import Document

from cluster.records import Citation
from serve.http.workbench import batch_references
from serve.http.workbench.batch_references import MISSING
from serve.references.documents.number_answer import DISCLAIMER
from tests.commands.run_here import run_here
from tests.serve.batches.served import ROWS, Asking, served
from tests.serve.batches.test_batches_over_http import ended
from tests.serve.problem import assert_refused
from tests.serve.service import CORPUS, SmallService

pytestmark = pytest.mark.model

TWICE = [*ROWS, {**ROWS[0], "id": "q4"}]


def in_ris(text: str) -> list[str]:
    return [entry["accession_number"] for entry in rispy.loads(text)]


def test_each_citation_of_a_batch_is_exported_once(tmp_path: Path, service: SmallService) -> None:
    with served(service, tmp_path, Asking(service)) as http:
        http.post("/v1/batches", json={"id": "b", "questions": TWICE})
        ended(http, "b")
        run = http.get("/v1/batches/b/run").json()
        cited = [url.split("/")[-1] for entry in run["questions"] for url in entry["documents"]]
        assert len(cited) > len(set(cited)) > 1
        reply = http.get("/v1/batches/b/references")
        assert in_ris(reply.text) == list(dict.fromkeys(cited))
        assert 'filename="references-b.ris' in reply.headers["content-disposition"]
        assert MISSING not in reply.headers
        table = http.get("/v1/batches/b/references?format=csv").text
        assert len(table.splitlines()) == 1 + len(set(cited))


def test_missing_citations_are_listed_and_invalid_requests_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = SmallService()
    look_up, gone = service.citation, {1}

    async def citation(pmid: int) -> Citation | None:
        return None if pmid in gone else await look_up(pmid)

    monkeypatch.setattr(service, "citation", citation)
    asking = Asking(service)
    with served(service, tmp_path, asking) as http:
        http.post("/v1/batches", json={"id": "b", "questions": ROWS})
        ended(http, "b")
        reply = http.get("/v1/batches/b/references")
        assert reply.headers[MISSING] == "1"
        assert "1" not in in_ris(reply.text)
        assert in_ris(reply.text)
        gone.update(c.pmid for c in CORPUS)

        def check(path: str, status: int, said: str) -> None:
            assert_refused(http.get(f"/v1/batches/{path}"), said, status)

        check("b/references", 404, "not in this index")
        check("none/references", 404, "there is no batch none")
        check("b/references?format=word", 422, "format: must be 'ris'")
        check("-/references", 422, "id: must be")
        asking.trouble = lambda question: 1 / 0  # type: ignore[assignment, return-value]
        http.post("/v1/batches", json={"id": "c", "questions": ROWS[:1]})
        ended(http, "c")
        check("c/references", 409, "has no run file yet")
        monkeypatch.setattr(batch_references, "MOST_CITATIONS", 1)
        check("b/references", 422, "citations, and a reply 1 at most; export them with `citeray")


def test_batch_becomes_a_word_document(
    tmp_path: Path, service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(service, tmp_path, Asking(service)) as http:
        http.post("/v1/batches", json={"id": "b", "questions": ROWS})
        ended(http, "b")
        entries = http.get("/v1/batches/b/run").json()["questions"]
        reply = http.get("/v1/batches/b/document")
        assert 'filename="answers-b.docx' in reply.headers["content-disposition"]
        texts = [p.text for p in Document(io.BytesIO(reply.content)).paragraphs]
        assert [text for text in texts if text in {row["body"] for row in ROWS}] == [
            row["body"] for row in ROWS
        ]
        assert entries[0]["ideal_answer"] in texts
        assert "Verdict: Answered." in texts
        assert any(text.startswith("[1]") and "PubMed" in text for text in texts)
        assert texts.count(DISCLAIMER) == 1
        assert_refused(http.get("/v1/batches/none/document"), "there is no batch none", 404)
        monkeypatch.setattr(batch_references, "MOST_DOCUMENTED", 1)
        assert_refused(http.get("/v1/batches/b/document"), "a document 1 at most", 422)


def test_filters_restrict_every_question_of_a_batch(tmp_path: Path) -> None:
    dated = [replace(citation, year=2000 + citation.pmid) for citation in CORPUS]
    service = SmallService(citations=dated)
    with served(service, tmp_path, Asking(service)) as http:
        asked = {"id": "b", "questions": ROWS, "filters": {"year_from": 2003}}
        assert "filters" not in http.post("/v1/batches", json=asked).json()
        ended(http, "b")
        entries = http.get("/v1/batches/b/run").json()["questions"]
        found = {url.rpartition("/")[2] for entry in entries for url in entry["documents"]}
        assert found == {"3"}
        other = {**asked, "filters": {"year_from": 2002}}
        assert http.post("/v1/batches", json=other).status_code == 409
        refused = http.post("/v1/batches", json={**asked, "filters": {"year": 2003}})
        assert_refused(refused, "filters.year")


def test_export_command_reads_a_batch_of_the_running_endpoint(tmp_path: Path) -> None:
    service = SmallService(tmp_path / "index")
    with served(service, tmp_path, Asking(service)) as http:
        http.post("/v1/batches", json={"id": "b", "questions": TWICE})
        ended(http, "b")
        there = http.get("/v1/batches/b/references").text
        index = f"--set=index.path={tmp_path / 'index'}"
        place = [index, f"--set=serve.port={http.base_url.port}"]
        code, out, _ = run_here("export", "--batch", "b", *place)
        assert (code, out) == (0, there)
        code, _, said = run_here("export", "--batch", "none", *place)
        assert (code, "there is no batch none" in said) == (2, True)
    code, _, said = run_here("export", "--batch", "b", index, "--set=serve.port=9")
    assert (code, "no endpoint is ready at http://127.0.0.1:9" in said) == (2, True)
