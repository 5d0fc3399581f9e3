from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from starlette.testclient import TestClient

from cluster.records import Author
from serve.question.example_questions import ExampleQuestion
from tests.serve.problem import assert_refused
from tests.serve.service import SmallService
from tests.small_index import citation

DOE = (Author("Doe", "Jo", "J"),)
IDS = {"doi": "10.1000/AbC", "pmcid": "PMC77"}
SICI = "10.1002/(SICI)1097-0142(19990101)85:1<1::AID-CNCR1>3.0.CO;2-D"
CORPUS = [
    citation(1, "Imatinib inhibits BCR-ABL kinase.", "Old imatinib", year=1999, authors=DOE),
    citation(2, "Imatinib inhibits BCR-ABL kinase.", "New imatinib", year=2024, **IDS),
    *(citation(n, "Warfarin inhibits VKORC1.", f"Warfarin {n}", year=2010) for n in range(3, 30)),
    citation(30, "Warfarin inhibits VKORC1.", "Warfarin 30", doi=SICI),
    citation(31, "Warfarin inhibits VKORC1.", "Warfarin 31", doi=SICI.partition("<")[0]),
]


@pytest.fixture(scope="module")
def service() -> SmallService:
    return SmallService(citations=CORPUS)


def search(http: TestClient, question: str, **fields: Any) -> dict[str, Any]:
    reply = http.post("/v1/search", json={"question": question, **fields})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def pmids(found: dict[str, Any]) -> list[int]:
    return [c["pmid"] for c in found["citations"]]


def test_field_tags_become_filters(http: TestClient) -> None:
    found = search(http, "imatinib AND 2000:2030[dp]", filters={"year_to": 2024})
    assert 2 in pmids(found)
    assert 1 not in pmids(found)
    assert found["understood"]["question"] == "imatinib"
    assert found["understood"]["filters"]["year_from"] == 2000
    assert (found["filters"]["year_from"], found["filters"]["year_to"]) == (2000, 2024)
    assert found["question"]["body"] == "imatinib AND 2000:2030[dp]"
    assert pmids(search(http, "imatinib AND doe jo[au]")) == [1]
    assert pmids(search(http, "imatinib", filters={"authors": ["Doe, J."]})) == [1]


def test_invalid_tags_and_turns_are_422(http: TestClient) -> None:
    asked: list[tuple[dict[str, Any], str]] = [
        ({"question": "imatinib NOT 2000[dp]"}, "question: NOT cannot be applied"),
        ({"question": "unheard[mh]"}, "not a MeSH heading that this index knows"),
        ({"question": "b", "turns": [{"question": "a"}] * 11}, "turns: must have at most 10 items"),
        ({"question": "b", "turns": [{"question": " "}]}, "turns.0.question: is empty"),
        ({"question": "b", "turns": [{"question": "a", "answer": "b" * 10_001}]}, "turns.0.answer"),
    ]
    for path, (body, said) in product(("/v1/search", "/v1/answer"), asked):
        assert_refused(http.post(path, json=body), said)


def test_pmid_doi_or_pmcid_finds_its_citation(http: TestClient) -> None:
    for question in ("PMID: 2", "https://doi.org/10.1000/aBC", "PMC77"):
        found = search(http, question)
        assert pmids(found)[0] == 2, question
        assert found["understood"]["pmids"] == [2]
        assert {item["passage"]["pmid"] for item in found["evidence"]} == {2}
        assert found["degraded"] == []
    assert search(http, SICI)["understood"]["pmids"] == [30]
    assert search(http, SICI.partition("<")[0])["understood"]["pmids"] == [31]
    partial = search(http, SICI.partition("(1999")[0])["understood"]
    assert partial["pmids"] == []
    assert partial["notes"] == ["not in this index: 10.1002/(sici)1097-0142"]
    answer = http.post("/v1/answer", json={"question": "PMID 2, 404"}).json()
    assert answer["understood"]["notes"] == ["not in this index: 404"]
    assert {p for sentence in answer["ideal"] for p in sentence["pmids"]} <= {2}


def test_typo_is_suggested_and_corrected_if_nothing_is_found(http: TestClient) -> None:
    for typed, meant in [
        ("Does warfarn inhibit VKORC1?", "Does warfarin inhibit VKORC1?"),
        ("Does imatinib inhibit BCR-ABL?", None),
    ]:
        found = search(http, typed)
        assert (found["did_you_mean"], found["understood"]) == (meant, None)
        assert found["question"]["body"] == typed
    # The correction is searched for if the question as typed finds nothing.
    found = search(http, "warfarn", system="bm25")
    assert 3 in pmids(found)
    assert found["understood"]["question"] == "warfarin"


def test_follow_up_question_is_completed_by_earlier_turns(http: TestClient) -> None:
    turns = [{"question": "Does imatinib inhibit BCR-ABL?", "answer": "Yes."}]
    asked = {"question": "What are its side effects?", "turns": turns}
    whole = "Does imatinib inhibit BCR-ABL? What are its side effects?"
    for path in ("/v1/search", "/v1/answer"):
        found = http.post(path, json=asked).json()
        assert found["understood"]["question"] == whole
        assert found["understood"]["completed_by"] == "rules"
        assert pmids(found) == pmids(search(http, whole))
        assert not [loss for loss in found["degraded"] if "rewrite" in loss]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": turns[0]["question"]},
        {"role": "assistant", "content": turns[0]["answer"]},
        {"role": "user", "content": asked["question"]},
    ]
    chat = {"model": "citeray", "messages": messages}
    said = http.post("/v1/chat/completions", json=chat).json()["choices"][0]["message"]
    assert said["citeray"]["understood"]["question"] == whole
    assert said["content"].startswith(f"Searched for: {whole}")


def test_examples_have_their_evidence_in_the_index(
    http: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert http.get("/v1/examples").json() == {"examples": []}
    every = (
        ExampleQuestion("Half here?", "yesno", (1, 99)),
        *(ExampleQuestion(f"Number {n}?", "yesno", (n,)) for n in (1, 2, 3)),
    )
    monkeypatch.setattr("serve.pipeline.answer_question.example_questions", lambda: every)
    found = http.get("/v1/examples").json()["examples"]
    assert [(e["question"], e["pmids"]) for e in found] == [("Number 1?", [1]), ("Number 2?", [2])]
