"""Answers that are stored, read by their address, replayed and deleted, over HTTP."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from sqlalchemy import update
from starlette.testclient import TestClient

from cluster.settings.settings import load_settings
from serve.http.door.guard import is_work
from serve.http.workbench.answers_api import NOT_KEPT
from serve.saved.keep import Saved
from serve.saved.tables import ANSWERS
from tests.serve.problem import detail_of
from tests.serve.saved.kept import KEYS, KEYS_ENV, saved_at
from tests.serve.saved.kept_api import client_of
from tests.serve.service import CORPUS, SmallService
from tests.small_index import citation

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_database")]

QUESTION = "Does metformin activate AMPK?"
ASKED = {"question": QUESTION, "type": "yesno", "id": "q7", "k": 3, "store": True}
AGAINST = citation(4, "Metformin does not activate AMPK in the liver of diabetic mice.")


@pytest.fixture
def keyed(service: SmallService, saved: Saved, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setenv("CITERAY_API_KEYS", KEYS_ENV)
    return client_of(service, saved)


def test_an_answer_streamed_or_not_is_stored_when_it_is_asked_for(http: TestClient) -> None:
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
    told = http.post("/v1/answer", json={**ASKED, "stream": True}).text
    data = [line.removeprefix("data: ") for line in told.splitlines() if line.startswith("data:")]
    streamed = json.loads(data[-1])
    kept = http.get(f"/v1/answers/{streamed['answer_id']}").json()
    assert (kept["answer"], "stream" in kept["request"]) == (streamed, False)


def test_the_operator_may_have_all_stored_or_none(service: SmallService, tmp_path: Path) -> None:
    always = client_of(service, saved_at(tmp_path, answers="always"))
    assert always.post("/v1/answer", json={"question": QUESTION}).json()["answer_id"]
    never = saved_at(tmp_path, answers="never")
    for keeps in (never, None):
        http = client_of(service, keeps)
        assert http.post("/v1/answer", json={"question": QUESTION}).json()["answer_id"] == ""
        refused = http.post("/v1/answer", json=ASKED)
        assert refused.status_code == 422
        assert detail_of(refused) == "store: this server keeps no answers; leave store out"


def test_a_list_is_newest_first_and_read_page_by_page(http: TestClient) -> None:
    ids = [http.post("/v1/answer", json=ASKED).json()["answer_id"] for _ in range(5)]
    first = http.get("/v1/answers", params={"limit": 3}).json()
    assert [row["id"] for row in first["answers"]] == ids[:1:-1]
    assert first["answers"][0].items() >= {"question": QUESTION, "verdict": "answered"}.items()
    rest = http.get("/v1/answers", params={"limit": 3, "before": first["next"]}).json()
    assert [row["id"] for row in rest["answers"]] == ids[1::-1]
    assert rest["next"] == ""


def test_an_answers_address_is_for_every_key_and_its_list_for_its_own(keyed: TestClient) -> None:
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


def test_a_replay_over_the_same_index_says_that_nothing_changed(http: TestClient) -> None:
    place = http.post("/v1/answer", json=ASKED).json()["answer_id"]
    again = http.post(f"/v1/answers/{place}/replay").json()
    compared = again["comparison"]
    same = [value for name, value in compared.items() if name.startswith("same_")]
    assert (same, compared["reasons"]) == ([True] * 7, [])
    assert again["now"]["ideal"] == again["stored"]["ideal"]
    assert again["now"]["question"]["id"] == "q7"


def test_a_replay_over_another_index_tells_what_differs_and_why(
    http: TestClient, saved: Saved
) -> None:
    place = http.post("/v1/answer", json=ASKED).json()["answer_id"]
    later = SmallService(citations=[*CORPUS[1:], AGAINST])
    later_http = client_of(later, saved)
    compared = later_http.post(f"/v1/answers/{place}/replay").json()["comparison"]
    assert compared["same_citations"] is False
    assert compared["same_preset"] is True
    gone = {cited["pmid"] for cited in compared["diff"]["supporting_removed"]}
    assert 1 in gone
    assert compared["reasons"]


def test_a_replay_uses_the_preset_as_it_was(http: TestClient, saved: Saved) -> None:
    place = http.post("/v1/answer", json={**ASKED, "check": "mark"}).json()["answer_id"]
    with saved.database.write() as connection:
        row = connection.execute(ANSWERS.select()).one()
        preset = {**row.record["preset"], "name": "gone", "evidence": 1}
        asked = {**row.record["request"], "system": "gone"}
        record = {**row.record, "preset": preset, "request": asked}
        record["answer"] = {**record["answer"], "system": "gone"}
        connection.execute(update(ANSWERS).values(record=record))
    again = http.post(f"/v1/answers/{place}/replay").json()
    assert (again["now"]["system"], again["now"]["check"]) == ("gone", "mark")
    assert len(again["now"]["evidence"]) == 1
    assert again["comparison"]["same_preset"] is False


def test_what_another_version_stored_is_told_so(http: TestClient, saved: Saved) -> None:
    place = http.post("/v1/answer", json=ASKED).json()["answer_id"]
    with saved.database.write() as connection:
        row = connection.execute(ANSWERS.select()).one()
        record = {**row.record, "preset": {"name": "old", "magic": 1}}
        connection.execute(update(ANSWERS).values(record=record))
    reply = http.post(f"/v1/answers/{place}/replay")
    assert reply.status_code == 409
    assert "of another version of CiteRay" in reply.json()["detail"]


def test_who_stores_too_much_is_told_in_the_answer(service: SmallService, tmp_path: Path) -> None:
    http = client_of(service, saved_at(tmp_path, most_answers=1))
    first, second = (http.post("/v1/answer", json=ASKED).json() for _ in range(2))
    assert first["answer_id"]
    assert second["answer_id"] == ""
    assert NOT_KEPT in second["degraded"]
    assert second["ideal"] == first["ideal"]


def test_answers_expire(http: TestClient, saved: Saved) -> None:
    old, new = (http.post("/v1/answer", json=ASKED).json()["answer_id"] for _ in range(2))
    past = time.time() - saved.answers.keep_s - 1
    with saved.database.write() as connection:
        connection.execute(update(ANSWERS).where(ANSWERS.c.id == old).values(created=past))
    assert saved.answers.remove_expired() == 1
    assert http.get(f"/v1/answers/{old}").status_code == 404
    assert http.get(f"/v1/answers/{new}").status_code == 200


def test_what_is_not_there_is_one_sentence(http: TestClient, subtests: pytest.Subtests) -> None:
    for method, path, status in [
        ("GET", "/v1/answers/nothing", 422),
        ("GET", f"/v1/answers/{'0' * 32}", 404),
        ("DELETE", f"/v1/answers/{'0' * 32}", 404),
        ("POST", f"/v1/answers/{'0' * 32}/replay", 404),
        ("GET", "/v1/answers?limit=0", 422),
        ("GET", "/v1/answers?before=x", 422),
    ]:
        with subtests.test(method=method, path=path):
            reply = http.request(method, path)
            assert reply.status_code == status
            assert detail_of(reply)


def test_a_replay_waits_for_its_turn_as_a_question_does() -> None:
    assert is_work("POST", f"/v1/answers/{'0' * 32}/replay")
    assert is_work("GET", "/v1/batches/b1/references")
    assert not is_work("GET", f"/v1/answers/{'0' * 32}")
