from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import feedparser
import pytest
from starlette.testclient import TestClient

from cluster.answers import Answer
from serve.contracts.request import Request
from serve.http.workbench.ask_service import ServiceAsk
from serve.saved.stores import Saved
from tests.serve.api import client_of
from tests.serve.problem import assert_refused, detail_of
from tests.serve.saved.kept import KEYS, saved_at
from tests.serve.saved.watches.asking import FakeAsk, check, check_supporting, made_answer
from tests.serve.service import DISPUTED, SmallService, dispute

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_database")]

QUESTION = "Does metformin activate AMPK?"
ASKED = {"question": QUESTION, "type": "yesno"}


class Updated(SmallService):
    """Service that answers from the next index version."""

    async def answer(self, request: Request) -> Answer:
        return replace(await super().answer(request), index_version="v000002")


def test_new_version_adds_a_check_with_the_changes(
    http: TestClient, saved: Saved, service: SmallService, tmp_path: Path
) -> None:
    watch = http.post("/v1/watches", json=ASKED).json()
    assert (watch["question"], watch["checked"], watch["index_version"]) == (QUESTION, None, "")
    assert watch["request"] == {**ASKED, "system": "citeray"}
    check(saved, ServiceAsk(service.answerer, "citeray"), "v000001")
    first = http.get(f"/v1/watches/{watch['id']}").json()
    assert first["answer"]["ideal"][0]["pmids"] == [1]
    assert [c["diff"] for c in first["history"]] == [None]
    updated = Updated(tmp_path / "updated", citations=DISPUTED, decide=dispute)
    check(saved, ServiceAsk(updated.answerer, "citeray"), "v000002")
    now = http.get(f"/v1/watches/{watch['id']}").json()
    assert (now["index_version"], now["answer"]["verdict"]) == ("v000002", "mixed")
    change = now["history"][0]
    assert change["notable"] is True
    assert change["diff"]["verdict"] == {"before": "answered", "now": "mixed"}
    assert [cited["pmid"] for cited in change["diff"]["contradicting_added"]] == [1, 4]
    (listed,) = http.get("/v1/watches").json()["watches"]
    assert listed["changes"].startswith("verdict changed, ")
    assert listed["changed"] == change["created"]
    assert len(http.get(f"/v1/watches/{watch['id']}?limit=1").json()["history"]) == 1


def test_feed_is_atom_with_permanent_ids(http: TestClient, saved: Saved) -> None:
    body = "Is <b>A&B</b> \x07 better?"
    place = http.post("/v1/watches", json={"question": body}).json()["id"]
    empty = http.get(f"/v1/watches/{place}/feed")
    assert empty.headers["content-type"] == "application/atom+xml"
    check_supporting(saved, "v1", 1)
    check_supporting(saved, "v2", 1, 2)
    check(saved, FakeAsk(lambda q: made_answer((1, 2), version="v3", text="Other.")), "v3")
    check(saved, FakeAsk(lambda q: made_answer((1, 2), (3,), version="v4")), "v4")
    text, again = (http.get(f"/v1/watches/{place}/feed").content for _ in range(2))
    assert text == again
    feed = feedparser.parse(text)
    assert (feed.bozo, feed.version) == (False, "atom10")
    assert feed.feed.id == feedparser.parse(empty.content).feed.id
    assert "A&amp;B" in text.decode()
    assert [entry.title for entry in feed.entries] == [
        "New evidence against the answer: PMID 3, Paper 3 (2003).",
        "New evidence for the answer: PMID 2, Paper 2 (2002).",
    ]
    assert len({entry.id for entry in feed.entries}) == 2
    assert all(entry.id.startswith("urn:uuid:") for entry in feed.entries)
    assert feed.feed.updated_parsed >= feed.entries[0].updated_parsed


def test_saved_question_is_visible_to_its_own_key_only(keyed: TestClient) -> None:
    http, alice, bob = keyed, KEYS["alice"], KEYS["bob"]
    place = http.post("/v1/watches", json=ASKED, headers=alice).json()["id"]
    for method, path in (("GET", ""), ("GET", "/feed"), ("DELETE", "")):
        reply = http.request(method, f"/v1/watches/{place}{path}", headers=bob)
        assert reply.status_code == 404
        assert detail_of(reply)
    assert http.get("/v1/watches", headers=bob).json() == {"watches": []}
    assert http.get(f"/v1/watches/{place}/feed").status_code == 401
    # Feed readers support only Basic authentication.
    read = http.get(f"/v1/watches/{place}/feed", auth=("anything", "a" * 32))
    assert read.status_code == 200
    assert http.get(f"/v1/watches/{place}/feed", auth=("alice", "wrong" * 8)).status_code == 401
    assert http.delete(f"/v1/watches/{place}", headers=alice).status_code == 204
    assert http.get(f"/v1/watches/{place}", headers=alice).status_code == 404


def test_invalid_question_is_not_saved(http: TestClient) -> None:
    for asked, said in [
        ({"question": ""}, "question: "),
        ({**ASKED, "system": "best"}, "system: unknown"),
        ({**ASKED, "stream": True}, "stream: "),
        ({**ASKED, "filters": {"year_from": 2020, "year_to": 2010}}, "year"),
        ({**ASKED, "filters": {"journals": ["Lancet"]}}, "no article in this index has 'lancet'"),
        ({**ASKED, "webhook": "https://hooks.example.org/x"}, "serve.saved.webhook_hosts"),
        ({**ASKED, "webhook": "ftp://hooks.example.org/x"}, "must begin with https://"),
    ]:
        assert_refused(http.post("/v1/watches", json=asked), said)
        assert http.get("/v1/watches").json() == {"watches": []}


def test_number_of_saved_questions_is_limited_and_duplicates_are_saved_once(
    service: SmallService, tmp_path: Path
) -> None:
    http = client_of(service, saved=saved_at(tmp_path, most_watches=1))
    first = http.post("/v1/watches", json=ASKED)
    assert http.post("/v1/watches", json={**ASKED, "system": "bm25"}).status_code == 409
    again = http.post("/v1/watches", json=ASKED)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]
