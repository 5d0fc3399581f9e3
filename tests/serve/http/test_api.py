import json
from itertools import product
from typing import Any

import pytest
from starlette.testclient import TestClient

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.serve.problem import detail_of, problem
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

QUESTION = "Does metformin activate AMPK?"


@pytest.fixture(scope="module")
def service() -> SmallService:
    return SmallService()


@pytest.fixture(scope="module")
def http(service: SmallService) -> TestClient:
    return TestClient(create_api(service, load_settings().serve))


def client_of(service: SmallService) -> TestClient:
    return TestClient(create_api(service, load_settings().serve))


def test_an_answer_cites_the_citation_that_says_it(http: TestClient) -> None:
    asked = {"question": QUESTION, "type": "yesno", "id": "q7", "k": 2}
    reply = http.post("/v1/answer", json=asked)
    assert reply.status_code == 200
    found = reply.json()
    assert found["question"] == {
        "id": "q7",
        "body": QUESTION,
        "type": "yesno",
        "exclude": [],
        "given": [],
        "budget_ms": 0,
        "guess": False,
    }
    assert found["origin"] == "extractive"
    assert found["ideal"][0]["pmids"] == [1]
    assert found["system"] == "citeray"
    assert found["degraded"][0] == "llm: not configured, extractive answer"
    assert len(found["citations"]) <= 2
    assert found["snippets"] == []


def test_a_request_may_have_its_own_check(http: TestClient) -> None:
    asked = {"question": QUESTION, "type": "yesno"}
    checks = [http.post("/v1/answer", json=asked | own).json()["check"] for own in CHECKS]
    assert checks == ["drop", "drop", "off", "mark", "off"]
    refused = http.post("/v1/answer", json={**asked, "check": "all"})
    assert refused.status_code == 422
    assert "check: Input should be 'drop', 'mark' or 'off' (got 'all')" in refused.json()["detail"]
    assert http.post("/v1/search", json={**asked, "check": "off"}).status_code == 422


def test_a_request_may_have_its_own_error_budget(http: TestClient) -> None:
    for body, budget, verdict in [
        (QUESTION, None, "answered"),
        (QUESTION, 1, "answered"),
        (QUESTION, 0, "not_enough_evidence"),
        ("Does zelavit cure hiccups?", None, "not_enough_evidence"),
        ("Does zelavit cure hiccups?", 1.0, "answered"),
    ]:
        asked = {"question": body, "type": "yesno"} | (
            {} if budget is None else {"max_wrong": budget}
        )
        assert http.post("/v1/answer", json=asked).json()["verdict"] == verdict, asked
    for wrong in (-0.1, 1.1, "much"):
        refused = http.post("/v1/answer", json={"question": QUESTION, "max_wrong": wrong})
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("max_wrong: ")
    assert http.post("/v1/search", json={"question": QUESTION, "max_wrong": 1}).status_code == 422


CHECKS: list[dict[str, str]] = [
    {},
    {"check": "drop"},
    {"check": "off"},
    {"check": "mark", "system": "biorag-v1"},
    {"system": "biorag-v1"},
]


def test_an_answer_may_carry_snippets_with_exact_offsets(http: TestClient) -> None:
    found = http.post("/v1/answer", json={"question": QUESTION, "snippets": True}).json()
    snippet = found["snippets"][0]
    abstract = http.get(f"/v1/citations/{snippet['pmid']}").json()["sections"][0]["text"]
    assert abstract[snippet["begin"] : snippet["end"]] == snippet["text"]


def test_a_search_ranks_citations_and_writes_nothing(http: TestClient) -> None:
    found = http.post("/v1/search", json={"question": QUESTION, "k": 1}).json()
    assert [c["pmid"] for c in found["citations"]] == [1]
    assert (found["coverage"], found["index_version"]) == ("2/2", "v000001")
    assert "ideal" not in found


def test_a_request_may_name_its_system(http: TestClient) -> None:
    found = http.post("/v1/search", json={"question": QUESTION, "system": "bm25"}).json()
    assert found["system"] == "bm25"


def test_white_space_around_a_question_is_no_part_of_it(
    http: TestClient, service: SmallService
) -> None:
    http.post("/v1/search", json={"question": f"  {QUESTION}\n"})
    assert service.asked[-1].body == QUESTION


def test_a_citation_is_the_whole_record(http: TestClient) -> None:
    reply = http.get("/v1/citations/1")
    assert reply.status_code == 200
    assert reply.json()["pmid"] == 1
    assert reply.json()["title"] == "Metformin and AMPK"
    assert reply.json()["authors"][0] == {
        "last": "Doe", "fore": "Jo", "initials": "J", "collective": "",
    }  # fmt: skip
    assert reply.json()["pages"] == "11-9"


def test_a_pmid_that_is_not_there_is_404_by_name(http: TestClient) -> None:
    reply = http.get("/v1/citations/99")
    assert (reply.status_code, detail_of(reply)) == (404, "PMID 99 is not in this index")


BAD_REQUESTS = {
    "empty": ({"question": ""}, "question: "),
    "blank": ({"question": " \n\t"}, "question: is empty; ask a question"),
    "absent": ({}, "question: Field required"),
    "no string": ({"question": 7}, "question: "),
    "too long": ({"question": "x" * 2001}, "at most 2000 characters"),
    "unknown type": ({"question": "a", "type": "maybe"}, "type: "),
    "unknown system": (
        {"question": "a", "system": "best"},
        "there are: aqams, aqams2, auto, auto-model",
    ),
    "k of 0": ({"question": "a", "k": 0}, "k: "),
    "k of 101": ({"question": "a", "k": 101}, "k: "),
    "k no number": ({"question": "a", "k": "x"}, "k: "),
    "unknown field": ({"question": "a", "top_k": 3}, "top_k: "),
}


def test_a_bad_request_is_422_and_one_sentence(http: TestClient, subtests: pytest.Subtests) -> None:
    for (body, said), path in product(BAD_REQUESTS.values(), ["/v1/answer", "/v1/search"]):
        with subtests.test(path=path, body=body):
            reply = http.post(path, json=body)
            assert reply.status_code == 422
            error = detail_of(reply)
            assert said in error
            assert "\n" not in error
            assert len(error) < 250


GIVEN = {
    "pmid": 2,
    "section": "abstract",
    "begin": 0,
    "end": 44,
    "text": "Metformin activates AMPK in rat hepatocytes.",
}


def test_an_answer_rests_on_the_evidence_that_the_request_gives(http: TestClient) -> None:
    found = http.post("/v1/answer", json={"question": QUESTION, "evidence": [GIVEN]}).json()
    assert [s["pmids"] for s in found["ideal"]] == [[2]]
    assert [e["passage"] for e in found["evidence"]] == [GIVEN]
    assert [c["pmid"] for c in found["citations"]] == [2]


def test_the_snippets_of_a_reply_can_be_given_with_the_next_question(http: TestClient) -> None:
    first = http.post("/v1/answer", json={"question": QUESTION, "snippets": True}).json()
    again = {"question": QUESTION, "evidence": first["snippets"]}
    found = http.post("/v1/answer", json=again).json()
    assert [e["passage"] for e in found["evidence"]] == first["snippets"]


BAD_EVIDENCE = {
    "no list": (7, "evidence: "),
    "no object": (["Metformin"], "evidence.0: "),
    "without text": ([{**GIVEN, "text": ""}], "evidence.0.text: is empty; leave the passage out"),
    "blank text": ([{**GIVEN, "text": " \n"}], "evidence.0.text: is empty"),
    "long text": ([{**GIVEN, "text": "x" * 5001}], "evidence.0.text: String should have at most"),
    "no PMID": ([GIVEN, {**GIVEN, "pmid": "PMC1"}], "evidence.1.pmid: "),
    "PMID 0": ([{**GIVEN, "pmid": 0}], "evidence.0.pmid: "),
    "other section": ([{**GIVEN, "section": "methods"}], "evidence.0.section: "),
    "negative offset": ([{**GIVEN, "begin": -1}], "evidence.0.begin: "),
    "end before begin": ([{**GIVEN, "begin": 45}], "evidence.0.end: is before begin (got 44)"),
    "unknown field": ([{**GIVEN, "score": 1}], "evidence.0.score: "),
    "too many": ([GIVEN] * 201, "evidence: List should have at most 200 items"),
    "many bad ones": ([{}] * 3, "and 10 more"),
}


def test_bad_evidence_is_refused_by_the_name_of_its_field(
    http: TestClient, subtests: pytest.Subtests
) -> None:
    for given, said in BAD_EVIDENCE.values():
        with subtests.test(given=given, said=said):
            reply = http.post("/v1/answer", json={"question": QUESTION, "evidence": given})
            assert reply.status_code == 422
            assert said in reply.json()["detail"]
            assert len(reply.json()["detail"]) < 500


def test_as_much_evidence_as_is_allowed_is_taken(http: TestClient) -> None:
    passages = [{**GIVEN, "begin": n, "end": n + 5000, "text": "x" * 5000} for n in range(200)]
    reply = http.post("/v1/answer", json={"question": QUESTION, "evidence": passages})
    assert reply.status_code == 200
    assert len(reply.json()["evidence"]) == 200


def test_a_search_takes_no_evidence(http: TestClient) -> None:
    reply = http.post("/v1/search", json={"question": QUESTION, "evidence": [GIVEN]})
    assert reply.status_code == 422
    assert "evidence: " in reply.json()["detail"]


def test_every_bad_field_is_named_at_once(http: TestClient) -> None:
    reply = http.post("/v1/answer", json={"question": "", "k": 0, "a/b~ü": 1})
    assert [error["pointer"] for error in reply.json()["errors"]] == [
        *("#/question", "#/k", "#/a~1b~0%C3%BC"),
    ]
    error = detail_of(reply)
    assert "question: " in error
    assert "k: " in error


@pytest.mark.parametrize("content", ["not json", '{"question": "a"', "[]", '"question"', ""])
def test_a_body_that_is_no_json_object_is_422(http: TestClient, content: str) -> None:
    reply = http.post("/v1/answer", content=content, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    assert reply.json()["detail"]


def test_the_fault_of_an_inner_field_is_pointed_to(http: TestClient) -> None:
    given = {"question": QUESTION, "evidence": [GIVEN, {**GIVEN, "pmid": 0}]}
    (error,) = http.post("/v1/answer", json=given).json()["errors"]
    assert error["pointer"] == "#/evidence/1/pmid"
    # What is not of the body, or is no field at all, has no pointer.
    assert "errors" not in http.get("/v1/citations/x").json()
    assert "errors" not in http.post("/v1/answer", content="{").json()


def test_the_longest_question_is_still_one(http: TestClient) -> None:
    question = ("metformin " * 200)[:2000]
    assert http.post("/v1/search", json={"question": question}).status_code == 200


@pytest.mark.parametrize("k", [1, 100])
def test_both_ends_of_k_are_in_range(http: TestClient, k: int) -> None:
    assert http.post("/v1/search", json={"question": QUESTION, "k": k}).status_code == 200


@pytest.mark.parametrize("pmid", ["0", "-1", "x", "1.5", str(2**64)])
def test_what_is_no_pmid_is_422(http: TestClient, pmid: str) -> None:
    reply = http.get(f"/v1/citations/{pmid}")
    assert reply.status_code == 422
    assert "pmid: " in reply.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/answer", "/v1/search", "/v1/citations/1"])
def test_while_loading_everything_but_health_is_503(path: str) -> None:
    http = client_of(SmallService(state="loading"))
    reply = http.get(path) if "citations" in path else http.post(path, json={"question": "a"})
    assert reply.status_code == 503
    assert int(reply.headers["Retry-After"]) > 0
    assert "still loading: shard-0001" in reply.json()["detail"]
    assert http.get("/healthz").status_code == 200


def test_readiness_says_what_is_served_and_what_is_loading() -> None:
    service = SmallService(state="loading")
    http = client_of(service)
    reply = http.get("/readyz")
    assert reply.status_code == 503
    assert reply.json()["stages"] == {"encoder": "ready", "shard-0001": "loading"}
    service.state = "ready"
    reply = http.get("/readyz")
    assert reply.status_code == 200
    assert reply.json()["ready"] is True
    assert reply.json()["index_version"] == "v000001"


def test_a_citation_of_a_lost_shard_is_503_with_the_time_to_come_back() -> None:
    reply = client_of(SmallService(broken=("shard-0", "shard-1"))).get("/v1/citations/1")
    assert reply.status_code == 503
    assert int(reply.headers["Retry-After"]) > 0
    assert "does not answer" in reply.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/answer", "/v1/search"])
def test_when_no_shard_answers_it_is_503_with_the_time_to_come_back(path: str) -> None:
    http = client_of(SmallService(broken=("shard-0", "shard-1")))
    reply = http.post(path, json={"question": QUESTION})
    assert reply.status_code == 503
    assert int(reply.headers["Retry-After"]) > 0
    assert "no shard" in reply.json()["detail"]


def test_a_lost_stage_costs_words_not_the_answer() -> None:
    http = client_of(SmallService(broken=("write",)))
    reply = http.post("/v1/answer", json={"question": QUESTION})
    assert reply.status_code == 200
    assert reply.json()["origin"] == "none"
    assert reply.json()["degraded"] == ["write: failed, evidence without an answer"]
    assert reply.json()["evidence"]


@pytest.mark.slow
def test_the_openapi_document_tells_of_errors_as_they_are_sent(http: TestClient) -> None:
    document = http.get("/openapi.json").json()
    told: dict[str, set[str]] = {}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if status >= "400":
                    told.setdefault(path, set()).update(response["content"])
    for path in ("/v1/chat/completions", "/v1/models", "/v1/models/{name}"):
        assert told.pop(path) == {"application/json"}
    # While stages load, what is ready and what is not comes as it does later.
    assert told.pop("/readyz") == {"application/problem+json", "application/json"}
    assert set.union(*told.values()) == {"application/problem+json"}


def test_the_openapi_document_describes_every_path(http: TestClient) -> None:
    document = http.get("/openapi.json").json()
    assert set(document["paths"]) == {
        "/v1/answer",
        "/v1/search",
        "/v1/suggest",
        "/v1/examples",
        "/v1/citations/{pmid}",
        "/v1/citations/{pmid}/related",
        "/v1/references",
        "/v1/answers/document",
        "/v1/citations",
        "/v1/systems",
        "/healthz",
        "/readyz",
        "/metrics",
        "/v1/chat/completions",
        "/v1/models",
        "/v1/models/{name}",
    }
    assert http.get("/docs").status_code == 200
    assert http.get("/redoc").status_code == 404


def test_an_unknown_path_is_404(http: TestClient) -> None:
    assert http.get("/v1/nothing").status_code == 404


def read_events(text: str) -> list[tuple[str, Any]]:
    """(event, data) of each server-sent event."""
    fields = [dict(line.split(": ", 1) for line in part.split("\n")) for part in parts_of(text)]
    return [(field["event"], json.loads(field["data"])) for field in fields]


def parts_of(text: str) -> list[str]:
    return [part for part in text.split("\n\n") if part and not part.startswith(":")]


def test_a_streamed_answer_ends_with_what_it_would_have_been_at_once(http: TestClient) -> None:
    asked = {"question": QUESTION, "type": "yesno"}
    at_once = http.post("/v1/answer", json=asked).json()
    reply = http.post("/v1/answer", json={**asked, "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = read_events(reply.text)
    names = [name for name, _ in events]
    assert names[-1] == "answer"
    assert "evidence" in names
    answer = events[-1][1]
    unlike: dict[str, Any] = {"timings_ms": {}, "spent": {}}
    assert {**answer, **unlike} == {**at_once, **unlike}
    told = {data["stage"]: data["ms"] for name, data in events if name == "stage"}
    assert told == answer["timings_ms"]


def test_a_streamed_answer_that_cannot_be_ends_with_an_error() -> None:
    broken = client_of(SmallService(broken=("shard-0", "shard-1")))
    reply = broken.post("/v1/answer", json={"question": QUESTION, "stream": True})
    assert read_events(reply.text)[-1] == (
        "error",
        problem(503, "no shard of the index answered; try again in a moment"),
    )
