"""Feedback on stored answers, and the gold file that comes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from evaluation.bioasq.read_bioasq import read_gold
from serve.saved.keep import Saved
from serve.synergy.keep_examples import remember
from tests.commands.run_here import run_here
from tests.serve.saved.kept import KEYS, KEYS_ENV, saved_at, url_of
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


def test_an_approved_answer_is_gold_that_can_be_scored_by_and_learnt_from(
    http: TestClient, tmp_path: Path
) -> None:
    place = stored(http)
    say(http, place, rating="up")
    gold = gold_of(http, tmp_path)
    entry = read_gold(gold)[place]
    assert (entry.type, entry.exact, entry.body) == ("yesno", (("yes",),), QUESTION)
    assert entry.documents == ("http://www.ncbi.nlm.nih.gov/pubmed/1",)
    assert [snippet.text for snippet in entry.snippets]
    (example,) = remember(tmp_path / "memory", [gold]).examples
    assert (example.body, example.exact) == (QUESTION, "yes")
    assert example.ideal == entry.ideal[0]


def test_a_corrected_answer_is_gold_as_it_was_corrected(http: TestClient, tmp_path: Path) -> None:
    place = stored(http)
    say(http, place, rating="up")
    say(http, place, rating="down", exact="no", ideal="Only in mice.", pmids=[2, 3, 2])
    entry = read_gold(gold_of(http, tmp_path))[place]
    assert (entry.exact, entry.ideal) == ((("no",),), ("Only in mice.",))
    assert [document.rpartition("/")[2] for document in entry.documents] == ["2", "3"]
    (example,) = remember(tmp_path / "memory", [tmp_path / "gold.json"]).examples
    assert (example.ideal, example.exact) == ("Only in mice.", "no")


def test_of_a_rejected_answer_nothing_but_its_correction_is_gold(
    http: TestClient, tmp_path: Path
) -> None:
    corrected, rejected = stored(http), stored(http)
    say(http, corrected, rating="down", exact="no")
    say(http, rejected, rating="down", note="wrong")
    rows = http.get("/v1/feedback/gold").json()["questions"]
    assert [row["id"] for row in rows] == [corrected]
    assert (rows[0]["exact_answer"], rows[0]["ideal_answer"]) == ("no", [])
    assert read_gold(gold_of(http, tmp_path))[corrected].exact == (("no",),)


def test_items_of_a_list_are_corrected_with_their_synonyms(
    http: TestClient, tmp_path: Path
) -> None:
    place = stored(http, question="Which drugs inhibit BCR-ABL?", type="list")
    names = [["imatinib", "Gleevec"], ["dasatinib"]]
    assert say(http, place, rating="down", exact=names).status_code == 201
    entry = read_gold(gold_of(http, tmp_path))[place]
    assert entry.exact == (("imatinib", "gleevec"), ("dasatinib",))


def test_feedback_that_makes_no_sense_is_one_sentence(
    http: TestClient, subtests: pytest.Subtests
) -> None:
    places = {kind: stored(http, type=kind) for kind in ("yesno", "summary", "list")}
    for kind, said, told in [
        ("yesno", {"rating": "maybe"}, "rating"),
        ("yesno", {}, "rating: Field required"),
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


def test_the_operator_lists_and_exports_all_of_it(http: TestClient, tmp_path: Path) -> None:
    place = stored(http)
    say(http, place, rating="down", exact="no", note="[bold]mice[/bold]")
    url = f"serve.saved.url={url_of(tmp_path)}"
    code, out, _ = run_here("feedback", "list", "--set", url)
    assert (code, place in out, QUESTION in out, "[bold]mice" in out) == (0, True, True, True)
    gold = tmp_path / "gold.json"
    code, out, _ = run_here("feedback", "export", "-o", gold, "--set", url, "--json")
    assert (code, json.loads(out)) == (0, {"gold": str(gold), "questions": 1, "feedback": 1})
    assert read_gold(gold)[place].exact == (("no",),)
    code, _, err = run_here("feedback", "export", "-o", gold, "--owner", "bob", "--set", url)
    assert (code, "nothing was written" in err) == (2, True)
    code, _, err = run_here("feedback", "list", "--set", "serve.saved.url=")
    assert (code, "nothing is kept" in err) == (2, True)
