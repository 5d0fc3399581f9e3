import json
from itertools import product
from typing import Any

import pytest
from httpx import Response
from starlette.testclient import TestClient

from cluster.records import Link
from serve.client.python_client import read_events
from tests.serve.api import client_of
from tests.serve.problem import assert_refused, detail_of, problem
from tests.serve.service import SmallService, unsure_of
from tests.small_index import citation

pytestmark = pytest.mark.slow

QUESTION = "Does metformin activate AMPK?"


def test_answer_cites_its_source(http: TestClient) -> None:
    asked = {"question": QUESTION, "type": "yesno", "id": "q7", "k": 2}
    reply = http.post("/v1/answer", json=asked)
    assert reply.status_code == 200
    found = reply.json()
    assert found["question"].items() >= {"id": "q7", "body": QUESTION, "type": "yesno"}.items()
    assert (found["origin"], found["system"]) == ("extractive", "citeray")
    assert found["ideal"][0]["pmids"] == [1]
    assert found["degraded"][0] == "llm: not configured, extractive answer"
    assert len(found["citations"]) <= 2
    assert found["snippets"] == []


def test_request_can_override_the_check(http: TestClient) -> None:
    asked = {"question": QUESTION, "type": "yesno"}
    for own, check in [
        ({}, "drop"),
        ({"check": "off"}, "off"),
        ({"check": "mark", "system": "biorag-v1"}, "mark"),
        ({"system": "biorag-v1"}, "off"),
    ]:
        assert http.post("/v1/answer", json=asked | own).json()["check"] == check, own
    assert http.post("/v1/answer", json={**asked, "check": "all"}).status_code == 422
    assert http.post("/v1/search", json={**asked, "check": "off"}).status_code == 422


def test_request_can_override_the_error_budget(http: TestClient) -> None:
    for body, budget, verdict in [
        (QUESTION, None, "answered"),
        (QUESTION, 0, "not_enough_evidence"),
        ("Does zelavit cure hiccups?", None, "not_enough_evidence"),
        ("Does zelavit cure hiccups?", 1.0, "answered"),
    ]:
        asked = {"question": body, "type": "yesno", "max_wrong": budget}
        assert http.post("/v1/answer", json=asked).json()["verdict"] == verdict, asked
    for wrong in (-0.1, 1.1, "much"):
        refused = http.post("/v1/answer", json={"question": QUESTION, "max_wrong": wrong})
        assert_refused(refused, "max_wrong: ")
    assert http.post("/v1/search", json={"question": QUESTION, "max_wrong": 1}).status_code == 422


def test_snippets_have_exact_offsets_and_can_be_given_as_evidence(http: TestClient) -> None:
    snippets = http.post("/v1/answer", json={"question": QUESTION, "snippets": True}).json()[
        "snippets"
    ]
    abstract = http.get(f"/v1/citations/{snippets[0]['pmid']}").json()["sections"][0]["text"]
    assert abstract[snippets[0]["begin"] : snippets[0]["end"]] == snippets[0]["text"]
    again = http.post("/v1/answer", json={"question": QUESTION, "evidence": snippets}).json()
    assert [e["passage"] for e in again["evidence"]] == snippets
    assert [c["pmid"] for c in again["citations"]] == [1]


def test_search_ranks_citations(http: TestClient, service: SmallService) -> None:
    asked = {"question": f"  {QUESTION}\n", "k": 1, "system": "bm25"}
    found = http.post("/v1/search", json=asked).json()
    assert service.asked[-1].body == QUESTION
    assert [c["pmid"] for c in found["citations"]] == [1]
    assert (found["coverage"], found["index_version"]) == ("2/2", "v000001")
    assert found["system"] == "bm25"
    assert "ideal" not in found


def test_citations_are_sorted_with_design_and_notice() -> None:
    said, trial = "Metformin lowers glucose.", ("Randomized Controlled Trial",)
    gone = (Link("RetractionIn", 8, "J. 2025"),)
    corpus = [
        citation(1, said, year=1999, publication_types=("Review",)),
        citation(2, said, year=2024, publication_types=trial),
        citation(3, said, year=2011, links=gone),
    ]
    http = client_of(SmallService(citations=corpus))
    orders = (("date", [2, 3, 1]), ("design", [2, 1, 3]))
    for path, (sort, pmids) in product(("/v1/search", "/v1/answer"), orders):
        asked = {"question": "Does metformin lower glucose?", "sort": sort}
        found = http.post(path, json=asked).json()
        assert (found["sort"], [c["pmid"] for c in found["citations"]]) == (sort, pmids)
    found = http.post("/v1/search", json=asked).json()
    worth = {c["pmid"]: (c["design"], c["notice"]) for c in found["citations"]}
    assert worth[2] == ("randomised_trial", "")
    assert worth[3][1] == "Retracted: see PMID 8."


def test_answer_without_evidence_has_a_guess_only_on_request() -> None:
    http = client_of(SmallService(decide=unsure_of))
    asked = {"question": QUESTION, "type": "yesno"}
    found = http.post("/v1/answer", json=asked).json()
    assert (found["verdict"], found["confidence"]) == ("not_enough_evidence", 0.25)
    assert (found["ideal"], found["exact"], found["guess"]) == ([], None, None)
    assert found["citations"][0]["pmid"] == 1
    guessed = http.post("/v1/answer", json={**asked, "guess": True}).json()
    assert (guessed["ideal"], guessed["guess"]["exact"]) == ([], "yes")


def test_citation_is_returned_or_refused(http: TestClient) -> None:
    record = http.get("/v1/citations/1").json()
    assert (record["pmid"], record["title"], record["pages"]) == (1, "Metformin and AMPK", "11-9")
    assert record["authors"] == [{"last": "Doe", "fore": "Jo", "initials": "J", "collective": ""}]
    assert_refused(http.get("/v1/citations/99"), "PMID 99 is not in this index", 404)
    for pmid in ("0", "-1", "x", "1.5", str(2**64)):
        assert_refused(http.get(f"/v1/citations/{pmid}"), "pmid: ")


GIVEN = {
    "pmid": 2,
    "section": "abstract",
    "begin": 0,
    "end": 44,
    "text": "Metformin activates AMPK in rat hepatocytes.",
}


BAD_REQUESTS: list[tuple[dict[str, Any], str]] = [
    ({"question": " \n\t"}, "question: is empty; ask a question"),
    ({}, "question: is missing"),
    ({"question": "x" * 2001}, "at most 2000 characters"),
    ({"question": "a", "type": "maybe"}, "type: "),
    ({"question": "a", "system": "best"}, "there are: aqams, aqams2, auto, auto-model"),
    ({"question": "a", "k": 101}, "k: "),
    ({"question": "a", "top_k": 3}, "top_k: "),
    ({"question": "a", "sort": "size"}, "sort: must be 'relevance', 'date' or 'design'"),
]


def test_invalid_request_is_422_with_one_sentence(http: TestClient) -> None:
    for (body, said), path in product(BAD_REQUESTS, ["/v1/answer", "/v1/search"]):
        assert_refused(http.post(path, json=body), said)
    for k in (1, 100):
        longest = {"question": ("metformin " * 200)[:2000], "k": k}
        assert http.post("/v1/search", json=longest).status_code == 200


def test_invalid_evidence_is_refused_by_field(http: TestClient) -> None:
    for given, said in [
        (7, "evidence: "),
        ([{**GIVEN, "text": " \n"}], "evidence.0.text: is empty; leave the passage out"),
        ([{**GIVEN, "text": "x" * 5001}], "evidence.0.text: must have at most"),
        ([GIVEN, {**GIVEN, "pmid": "PMC1"}], "evidence.1.pmid: "),
        ([{**GIVEN, "section": "methods"}], "evidence.0.section: "),
        ([{**GIVEN, "begin": 45}], "evidence.0.end: is before begin (got 44)"),
        ([{**GIVEN, "score": 1}], "evidence.0.score: "),
        ([GIVEN] * 201, "evidence: must have at most 200 items"),
        ([{}] * 3, "and 10 more"),
    ]:
        reply = http.post("/v1/answer", json={"question": QUESTION, "evidence": given})
        assert_refused(reply, said)
    reply = http.post("/v1/search", json={"question": QUESTION, "evidence": [GIVEN]})
    assert_refused(reply, "evidence: ")
    most = [{**GIVEN, "begin": n, "end": n + 5000, "text": "x" * 5000} for n in range(200)]
    reply = http.post("/v1/answer", json={"question": QUESTION, "evidence": most})
    assert (reply.status_code, len(reply.json()["evidence"])) == (200, 200)


def test_errors_have_json_pointers(http: TestClient) -> None:
    reply = http.post("/v1/answer", json={"question": "", "k": 0, "a/b~ü": 1})
    pointers = [error["pointer"] for error in reply.json()["errors"]]
    assert pointers == ["#/question", "#/k", "#/a~1b~0%C3%BC"]
    assert all(part in detail_of(reply) for part in ("question: ", "k: "))
    # An empty value is not shown again.
    assert "got ''" not in detail_of(reply)
    given = {"question": QUESTION, "evidence": [GIVEN, {**GIVEN, "pmid": 0}]}
    (error,) = http.post("/v1/answer", json=given).json()["errors"]
    assert error["pointer"] == "#/evidence/1/pmid"
    # Errors outside the fields of the body have no pointer.
    assert "errors" not in http.get("/v1/citations/x").json()
    assert "errors" not in http.post("/v1/answer", content="{").json()


def test_readiness_lists_loading_stages() -> None:
    service = SmallService(state="loading")
    http = client_of(service)
    reply = http.get("/readyz")
    assert reply.status_code == 503
    assert reply.json()["stages"] == {"encoder": "ready", "shard-0001": "loading"}
    service.state = "ready"
    reply = http.get("/readyz")
    assert (reply.status_code, reply.json()["ready"]) == (200, True)


def asked_for(http: TestClient, path: str) -> str:
    """Return the message of the 503 at `path`."""
    reply = http.get(path) if "citations" in path else http.post(path, json={"question": QUESTION})
    assert reply.status_code == 503
    assert int(reply.headers["Retry-After"]) > 0
    assert http.get("/healthz").status_code == 200
    return str(reply.json()["detail"])


def test_loading_or_lost_index_is_503() -> None:
    loading = client_of(SmallService(state="loading"))
    broken = client_of(SmallService(broken=("shard-0", "shard-1")))
    for path, lost in (
        ("/v1/answer", "no shard"),
        ("/v1/search", "no shard"),
        ("/v1/citations/1", "does not answer"),
    ):
        assert "still loading: shard-0001" in asked_for(loading, path)
        assert lost in asked_for(broken, path)


def events_of(reply: Response) -> list[tuple[str, Any]]:
    """Return (name, data) of each server-sent event."""
    return [(name, json.loads(data)) for name, data in read_events(reply.text.split("\n"))]


def test_stream_ends_with_the_answer_or_an_error(http: TestClient) -> None:
    asked = {"question": QUESTION, "type": "yesno"}
    at_once = http.post("/v1/answer", json=asked).json()
    reply = http.post("/v1/answer", json={**asked, "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = events_of(reply)
    names = [name for name, _ in events]
    assert names[-1] == "answer"
    assert "evidence" in names
    answer = events[-1][1]
    unlike: dict[str, Any] = {"timings_ms": {}, "spent": {}}
    assert {**answer, **unlike} == {**at_once, **unlike}
    timings = {data["stage"]: data["ms"] for name, data in events if name == "stage"}
    assert timings == answer["timings_ms"]
    broken = client_of(SmallService(broken=("shard-0", "shard-1")))
    reply = broken.post("/v1/answer", json={"question": QUESTION, "stream": True})
    assert events_of(reply)[-1] == (
        "error",
        problem(503, "no shard of the index answered; try again in a moment"),
    )
