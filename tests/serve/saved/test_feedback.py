"""Feedback on stored answers, and the gold file that comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from evaluation.bioasq.read_bioasq import read_gold
from serve.saved.keep import Saved
from serve.synergy.keep_examples import remember
from tests.serve.saved.kept import KEYS, KEYS_ENV, saved_at
from tests.serve.saved.kept_api import client_of
from tests.serve.service import SmallService

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_database")]

QUESTION = "Does metformin activate AMPK?"
ASKED = {"question": QUESTION, "type": "yesno", "store": True}


def stored(http: TestClient, **asked: Any) -> str:
    place: str = http.post("/v1/answer", json={**ASKED, **asked}).json()["answer_id"]
    return place


def say(http: TestClient, place: str, **said: Any) -> Any:
    return http.post(f"/v1/answers/{place}/feedback", json=said)


def gold_of(http: TestClient, folder: Path) -> Path:
    path = folder / "gold.json"
    path.write_text(http.get("/v1/feedback/gold").text)
    return path


def test_a_thumb_is_kept_once_with_what_it_is_about(http: TestClient) -> None:
    place = stored(http)
    reply, again = (say(http, place, rating="up", note=" Right. ") for _ in range(2))
    assert (reply.status_code, again.json()) == (201, reply.json())
    (item,) = http.get("/v1/feedback").json()["feedback"]
    assert item == reply.json()
    assert (item["answer_id"], item["question"], item["verdict"]) == (place, QUESTION, "answered")
    assert (item["rating"], item["note"], item["index_version"]) == ("up", "Right.", "v000001")
    other = say(http, place, rating="down").json()
    listed = http.get("/v1/feedback").json()["feedback"]
    assert [one["id"] for one in listed] == [other["id"], item["id"]]


def test_gold_is_what_was_approved_or_as_it_was_corrected(http: TestClient, tmp_path: Path) -> None:
    approved, corrected, rejected = (stored(http) for _ in range(3))
    say(http, approved, rating="up")
    say(http, corrected, rating="up")
    say(http, corrected, rating="down", exact="no", ideal="Only in mice.", pmids=[2, 3, 2])
    say(http, rejected, rating="down", note="wrong")
    listed = stored(http, question="Which drugs inhibit BCR-ABL?", type="list")
    say(http, listed, rating="down", exact=[["imatinib", "Gleevec"], ["dasatinib"]])
    gold = gold_of(http, tmp_path)
    found = read_gold(gold)
    assert found.keys() == {approved, corrected, listed}
    entry = found[approved]
    assert (entry.type, entry.exact, entry.body) == ("yesno", (("yes",),), QUESTION)
    assert entry.documents == ("http://www.ncbi.nlm.nih.gov/pubmed/1",)
    assert [snippet.text for snippet in entry.snippets]
    changed = found[corrected]
    assert (changed.exact, changed.ideal) == ((("no",),), ("Only in mice.",))
    assert [document.rpartition("/")[2] for document in changed.documents] == ["2", "3"]
    # Of what was rejected nothing but the correction is gold.
    assert (found[listed].exact, found[listed].ideal) == (
        (("imatinib", "gleevec"), ("dasatinib",)),
        (),
    )
    examples = {example.id: example for example in remember(tmp_path / "memory", [gold]).examples}
    assert (examples[approved].body, examples[approved].exact) == (QUESTION, "yes")
    assert examples[approved].ideal == entry.ideal[0]
    assert (examples[corrected].ideal, examples[corrected].exact) == ("Only in mice.", "no")


def test_feedback_that_makes_no_sense_is_one_sentence(
    http: TestClient, subtests: pytest.Subtests
) -> None:
    places = {kind: stored(http, type=kind) for kind in ("yesno", "summary", "list")}
    for kind, said, told in [
        ("yesno", {"rating": "maybe"}, "rating"),
        ("yesno", {"rating": "up", "exact": [["yes"]]}, "exact: must be yes or no"),
        ("summary", {"rating": "up", "exact": "yes"}, "exact: must be left out"),
        ("list", {"rating": "up", "exact": "yes"}, "exact: must be a list of items"),
        ("list", {"rating": "up", "exact": [[]]}, "exact"),
        ("yesno", {"rating": "up", "note": "x" * 5001}, "at most 5000 characters"),
        ("yesno", {"rating": "up", "pmids": [0]}, "pmids.0"),
        ("yesno", {"rating": "up", "stars": 5}, "stars"),
    ]:
        with subtests.test(kind=kind, said=said):
            reply = say(http, places[kind], **said)
            assert (reply.status_code, told in reply.json()["detail"]) == (422, True)


def test_feedback_needs_an_answer_that_is_stored(http: TestClient) -> None:
    assert say(http, "0" * 32, rating="up").status_code == 404
    place = stored(http)
    say(http, place, rating="up")
    assert http.delete(f"/v1/answers/{place}").status_code == 204
    assert http.get("/v1/feedback").json()["feedback"] == []
    assert say(http, place, rating="up").status_code == 404


def test_too_much_feedback_on_one_answer_is_refused(
    http: TestClient, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serve.saved.feedback.MOST_ON_AN_ANSWER", 3)
    place = stored(http)
    for number in range(3):
        assert say(http, place, rating="up", note=f"{number}").status_code == 201
    assert say(http, place, rating="up", note="more").status_code == 409
    assert len(saved.feedback.all()) == 3


def test_an_answer_with_feedback_does_not_expire(service: SmallService, tmp_path: Path) -> None:
    saved = saved_at(tmp_path, keep_days="0.0000001")
    http = client_of(service, saved)
    judged, other = stored(http), stored(http)
    say(http, judged, rating="up")
    saved.answers.remove_expired()
    assert http.get(f"/v1/answers/{judged}").status_code == 200
    assert http.get(f"/v1/answers/{other}").status_code == 404


def test_feedback_is_seen_by_who_gave_it_and_by_whose_answer_it_is(
    service: SmallService, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", f"{KEYS_ENV} carol:{'c' * 32}")
    http = client_of(service, saved)
    alice, bob, carol = *KEYS.values(), {"X-API-Key": "c" * 32}
    place = http.post("/v1/answer", json=ASKED, headers=alice).json()["answer_id"]
    path = f"/v1/answers/{place}/feedback"
    given = http.post(path, json={"rating": "down", "exact": "no"}, headers=bob).json()["id"]
    seen = {
        name: [item["mine"] for item in http.get("/v1/feedback", headers=key).json()["feedback"]]
        for name, key in (("alice", alice), ("bob", bob), ("carol", carol))
    }
    assert seen == {"alice": [False], "bob": [True], "carol": []}
    assert http.get("/v1/feedback/gold", headers=carol).json() == {"questions": []}
    assert http.delete(f"/v1/feedback/{given}", headers=carol).status_code == 404
    assert http.delete(f"/v1/feedback/{given}", headers=alice).status_code == 204
    assert http.get("/v1/feedback", headers=bob).json()["feedback"] == []
