import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
import rispy
from starlette.testclient import TestClient

from cluster.records import Citation
from serve.http.workbench.collect_citations import AT_ONCE, collect_citations
from tests.serve.problem import assert_refused
from tests.serve.service import DISPUTED, SmallService

pytestmark = pytest.mark.slow

QUESTION = {"question": "Does metformin activate AMPK?", "type": "yesno"}


@pytest.fixture(scope="module")
def service() -> SmallService:
    return SmallService(citations=[*DISPUTED, Citation(pmid=9)])


def test_references_are_in_the_requested_order(http: TestClient) -> None:
    reply = http.get("/v1/references", params={"pmids": "3,1,3", "format": "ris"})
    assert reply.status_code == 200
    assert reply.headers["content-disposition"] == 'attachment; filename="references.ris"'
    assert reply.headers["content-type"] == "application/x-research-info-systems"
    entries = rispy.loads(reply.text.replace("\r\n", "\n"))
    assert [entry["accession_number"] for entry in entries] == ["3", "1"]
    (styled,) = http.get("/v1/references?pmids=1&style=vancouver").json()["references"]
    assert (styled["number"], styled["pmid"], styled["retracted"]) == (1, 1, "")
    text = "Doe J. Metformin and AMPK. 11-9. PubMed PMID: 1."
    assert styled["text"] == styled["html"] == text


def test_invalid_references_request_is_refused(http: TestClient) -> None:
    many, styled = (",".join(map(str, range(1, most + 2))) for most in (1000, 200))
    for query, status, said in [
        ("1,97,98&format=ris", 404, "PMID 97, 98: not in this index"),
        ("1&format=ris&style=apa", 422, "give one of the fields format and style"),
        ("1,x&format=ris", 422, "pmids: is not a list of PMIDs; give their digits"),
        ("9999999999999999&format=ris", 422, "is not a PMID; the largest number is"),
        ("1&format=pdf", 422, "format: must be 'ris'"),
        (f"{many}&format=ris", 422, "give 1,000 at most"),
        (f"{styled}&style=apa", 422, "give 200 at most"),
    ]:
        assert_refused(http.get(f"/v1/references?pmids={query}"), said, status)


def test_related_citations_exclude_the_citation(http: TestClient, service: SmallService) -> None:
    found = http.get("/v1/citations/1/related", params={"k": 1, "system": "bm25"}).json()
    assert [citation["pmid"] for citation in found["citations"]] == [4]
    assert service.asked[-1].body.startswith("Metformin and AMPK Metformin activates AMPK")
    assert service.asked[-1].exclude == (1,)
    assert_refused(http.get("/v1/citations/99/related"), "PMID 99 is not in this index", 404)
    assert_refused(http.get("/v1/citations/9/related"), "PMID 9 has neither title nor abstract")


def test_answer_is_written_as_a_document(http: TestClient) -> None:
    answer = http.post("/v1/answer", json=QUESTION).json()
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    for form, ending, media, begin in (
        ("markdown", "md", "text/markdown; charset=utf-8", b"# "),
        ("docx", "docx", word, b"PK"),
        ("pdf", "pdf", "application/pdf", b"%PDF"),
    ):
        reply = http.post(f"/v1/answers/document?form={form}&style=ama", json=answer)
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"] == media
        name = f'attachment; filename="citeray-answer.{ending}"'
        assert reply.headers["content-disposition"] == name
        assert reply.content.startswith(begin)
        if form == "markdown":
            assert QUESTION["question"] in reply.text
            assert "Doe J. Metformin and AMPK." in reply.text


def test_invalid_answer_is_refused_by_field(http: TestClient) -> None:
    answer = http.post("/v1/answer", json=QUESTION).json()
    citing = [{"text": "It does.", "pmids": [-3], "support": 1.0}]
    changed: list[tuple[dict[str, Any], str]] = [
        ({}, "question: is missing"),
        ({**answer, "verdict": "sure"}, "verdict: must be"),
        ({**answer, "writing_calls": False}, "writing_calls: "),
        ({**answer, "ideal": citing}, "the answer cites -3, which is not a PMID"),
        ({**answer, "degraded": ["x" * 100_001]}, "a document has 100,000 at most"),
        ({"\ud8bc": 1}, "is not JSON"),
        ({"question": {"id": "\udbfc"}}, "is not JSON"),
    ]
    for body, said in changed:
        content, headers = json.dumps(body), {"Content-Type": "application/json"}
        reply = http.post("/v1/answers/document", content=content, headers=headers)
        assert_refused(reply, said)


def test_citations_are_fetched_concurrently_within_a_limit() -> None:
    class Slow:
        running = most = 0

        async def citation(self, pmid: int) -> Citation | None:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0)
            self.running -= 1
            return Citation(pmid=pmid) if pmid % 2 else None

    slow = Slow()
    service: Any = SimpleNamespace(answerer=slow)
    found = asyncio.run(collect_citations(service, range(1, 101)))
    assert [citation.pmid for citation in found] == list(range(1, 101, 2))
    assert slow.most == AT_ONCE
