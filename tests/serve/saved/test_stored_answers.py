from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update
from starlette.testclient import TestClient

from cluster.records import Link
from cluster.settings.settings import load_settings
from serve.http.workbench.answers_api import NOT_KEPT
from serve.saved.stores import Saved
from serve.saved.tables import ANSWERS
from tests.serve.api import client_of
from tests.serve.http.test_api import events_of
from tests.serve.problem import detail_of
from tests.serve.saved.kept import KEYS, saved_at
from tests.serve.service import CORPUS, DISPUTED, SmallService

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_database")]

QUESTION = "Does metformin activate AMPK?"
ASKED = {"question": QUESTION, "type": "yesno", "id": "q7", "k": 3, "store": True}


def test_answer_is_stored_on_request_streamed_or_not(http: TestClient) -> None:
    unwanted = http.post("/v1/answer", json={**ASKED, "store": False}).json()
    assert unwanted["answer_id"] == ""
    assert http.get("/v1/answers").json() == {"answers": [], "next": ""}
    given = http.post("/v1/answer", json=ASKED).json()
    kept = http.get(f"/v1/answers/{given['answer_id']}").json()
    assert kept["answer"] == given
    asked = {name: value for name, value in ASKED.items() if name != "store"}
    assert kept["request"] == {**asked, "system": "citeray"}
    assert kept["preset"]["name"] == "citeray"
    assert kept["models"]["encoder"] == load_settings().encoder.model
    assert kept["created"] < kept["expires"]
    assert kept["mine"] is True
    streamed = events_of(http.post("/v1/answer", json={**ASKED, "stream": True}))[-1][1]
    kept = http.get(f"/v1/answers/{streamed['answer_id']}").json()
    assert (kept["answer"], "stream" in kept["request"]) == (streamed, False)


def test_changes_of_a_stored_answer_name_sources_retracted_since(
    http: TestClient, saved: Saved
) -> None:
    stored = http.post("/v1/answer", json=ASKED).json()["answer_id"]
    assert http.get(f"/v1/answers/{stored}/changes").json() == {"changed": "", "sources": []}
    notice = Link("RetractionIn", 77, "J Urol. 2026;1:2")
    later = SmallService(citations=[replace(CORPUS[0], links=(notice,))])
    changes = client_of(later, saved=saved).get(f"/v1/answers/{stored}/changes").json()
    assert changes["changed"] == "1 retraction"
    (source,) = changes["sources"]
    assert (source["pmid"], source["kind"]) == (1, "retracted")
    assert "PMID 77" in source["detail"]
    gone = SmallService(citations=CORPUS[1:])
    changes = client_of(gone, saved=saved).get(f"/v1/answers/{stored}/changes").json()
    assert changes["changed"] == "1 deletion"


def test_recent_answer_is_stored_without_asking_again(
    keyed: TestClient, service: SmallService
) -> None:
    """The page stores an answer after it has shown it; an answer is stored only once."""

    def ask(key: str, **changes: Any) -> str:
        asked = {**ASKED, "store": False, **changes}
        reply = keyed.post("/v1/answer", json=asked, headers=KEYS[key])
        answer = events_of(reply)[-1][1] if changes.get("stream") else reply.json()
        return str(answer["answer_id"])

    for stream in (False, True):
        service.asked.clear()
        assert ask("alice", stream=stream) == ""
        assert ask("bob", store=True)
        assert ask("alice", store=True, k=4)
        assert len(service.asked) == 3
        assert ask("alice", store=True, stream=not stream)
        assert len(service.asked) == 3
        assert ask("alice", store=True)
        assert len(service.asked) == 4


def test_operator_can_store_all_answers_none_or_a_limited_number(
    service: SmallService, tmp_path: Path
) -> None:
    always = client_of(service, saved=saved_at(tmp_path, answers="always"))
    assert always.post("/v1/answer", json={"question": QUESTION}).json()["answer_id"]
    never = saved_at(tmp_path, answers="never")
    for keeps in (never, None):
        http = client_of(service, saved=keeps)
        assert http.post("/v1/answer", json={"question": QUESTION}).json()["answer_id"] == ""
        refused = http.post("/v1/answer", json=ASKED)
        assert refused.status_code == 422
        assert detail_of(refused) == "store: this server does not store answers; remove store"
    full = client_of(service, saved=saved_at(tmp_path, most_answers=1))
    first = full.post("/v1/answer", json=ASKED).json()
    assert (first["answer_id"], NOT_KEPT in first["degraded"]) == ("", True)


def test_answers_are_listed_newest_first_in_pages(http: TestClient) -> None:
    ids = [http.post("/v1/answer", json=ASKED).json()["answer_id"] for _ in range(5)]
    first = http.get("/v1/answers", params={"limit": 3}).json()
    assert [row["id"] for row in first["answers"]] == ids[:1:-1]
    assert first["answers"][0].items() >= {"question": QUESTION, "verdict": "answered"}.items()
    rest = http.get("/v1/answers", params={"limit": 3, "before": first["next"]}).json()
    assert [row["id"] for row in rest["answers"]] == ids[1::-1]
    assert rest["next"] == ""


def test_stored_answer_is_readable_by_every_key_and_listed_for_its_owner(keyed: TestClient) -> None:
    alice, bob = KEYS["alice"], KEYS["bob"]
    place = keyed.post("/v1/answer", json=ASKED, headers=alice).json()["answer_id"]
    assert keyed.get(f"/v1/answers/{place}").status_code == 401
    assert keyed.get(f"/v1/answers/{place}", headers=alice).json()["mine"] is True
    theirs = keyed.get(f"/v1/answers/{place}", headers=bob)
    assert theirs.json()["mine"] is False
    assert "alice" not in theirs.text
    assert keyed.get("/v1/answers", headers=bob).json()["answers"] == []
    assert keyed.get("/v1/answers", headers=bob, params={"before": place}).status_code == 404
    assert keyed.delete(f"/v1/answers/{place}", headers=bob).status_code == 404
    assert len(keyed.get("/v1/answers", headers=alice).json()["answers"]) == 1
    assert keyed.delete(f"/v1/answers/{place}", headers=alice).status_code == 204
    assert keyed.get(f"/v1/answers/{place}", headers=alice).status_code == 404


def test_replay_reports_whether_and_why_the_answer_changed(http: TestClient, saved: Saved) -> None:
    place = http.post("/v1/answer", json=ASKED).json()["answer_id"]
    again = http.post(f"/v1/answers/{place}/replay").json()
    compared = again["comparison"]
    same = [value for name, value in compared.items() if name.startswith("same_")]
    assert (same, compared["reasons"]) == ([True] * 7, [])
    assert again["now"]["ideal"] == again["stored"]["ideal"]
    assert again["now"]["question"]["id"] == "q7"
    later = SmallService(citations=DISPUTED[1:])
    compared = (
        client_of(later, saved=saved).post(f"/v1/answers/{place}/replay").json()["comparison"]
    )
    assert (compared["same_citations"], compared["same_preset"]) == (False, True)
    assert 1 in {cited["pmid"] for cited in compared["diff"]["supporting_removed"]}
    assert compared["reasons"]


def test_replay_uses_the_stored_preset_if_this_version_can_read_it(
    http: TestClient, saved: Saved
) -> None:
    place = http.post("/v1/answer", json={**ASKED, "check": "mark"}).json()["answer_id"]

    def replay(preset: dict[str, Any]) -> httpx.Response:
        with saved.database.write() as connection:
            record = connection.execute(ANSWERS.select()).one().record
            record["request"]["system"] = record["answer"]["system"] = "gone"
            changed = update(ANSWERS).values(record={**record, "preset": preset})
            connection.execute(changed)
        return http.post(f"/v1/answers/{place}/replay")

    stored = http.get(f"/v1/answers/{place}").json()["preset"]
    again = replay({**stored, "name": "gone", "evidence": 1}).json()
    assert (again["now"]["system"], again["now"]["check"]) == ("gone", "mark")
    assert len(again["now"]["evidence"]) == 1
    assert again["comparison"]["same_preset"] is False
    refused = replay({"name": "old", "magic": 1})
    assert refused.status_code == 409
    assert "from another version of CiteRay" in refused.json()["detail"]


def test_expired_answers_without_feedback_are_removed(http: TestClient, saved: Saved) -> None:
    old, judged, new = (http.post("/v1/answer", json=ASKED).json()["answer_id"] for _ in range(3))
    assert http.post(f"/v1/answers/{judged}/feedback", json={"rating": "up"}).status_code == 201
    past = time.time() - saved.answers.keep_s - 1
    with saved.database.write() as connection:
        connection.execute(update(ANSWERS).where(ANSWERS.c.id != new).values(created=past))
    assert saved.answers.remove_expired() == 1
    found = [http.get(f"/v1/answers/{place}").status_code for place in (old, judged, new)]
    assert found == [404, 200, 200]


def test_missing_answer_is_404_and_invalid_id_is_422(http: TestClient) -> None:
    for method, path, status in [
        ("GET", "/v1/answers/nothing", 422),
        ("GET", f"/v1/answers/{'0' * 32}", 404),
        ("DELETE", f"/v1/answers/{'0' * 32}", 404),
        ("POST", f"/v1/answers/{'0' * 32}/replay", 404),
        ("GET", "/v1/answers?limit=0", 422),
        ("GET", "/v1/answers?before=x", 422),
    ]:
        reply = http.request(method, path)
        assert reply.status_code == status
        assert detail_of(reply)
