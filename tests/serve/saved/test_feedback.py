from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from evaluation.bioasq.read_bioasq import read_gold
from serve.answer.examples.example_store import store_examples
from tests.serve.problem import assert_refused
from tests.serve.saved.kept import KEYS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_database")]

QUESTION = "Does metformin activate AMPK?"
ASKED = {"question": QUESTION, "type": "yesno", "store": True}


def stored(http: TestClient, **asked: Any) -> str:
    return str(http.post("/v1/answer", json={**ASKED, **asked}).json()["answer_id"])


def say(http: TestClient, where: str, **said: Any) -> Any:
    return http.post(f"/v1/answers/{where}/feedback", json=said)


def test_repeated_rating_is_stored_once_with_its_answer(http: TestClient) -> None:
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


def test_gold_contains_approved_and_corrected_answers(http: TestClient, tmp_path: Path) -> None:
    approved, corrected, rejected = (stored(http) for _ in range(3))
    say(http, approved, rating="up")
    say(http, corrected, rating="up")
    say(http, corrected, rating="down", exact="no", ideal="Only in mice.", pmids=[2, 3, 2])
    say(http, rejected, rating="down", note="wrong")
    listed = stored(http, question="Which drugs inhibit BCR-ABL?", type="list")
    say(http, listed, rating="down", exact=[["imatinib", "Gleevec"], ["dasatinib"]])
    gold = tmp_path / "gold.json"
    gold.write_text(http.get("/v1/feedback/gold").text)
    found = read_gold(gold)
    assert found.keys() == {approved, corrected, listed}
    entry = found[approved]
    assert (entry.type, entry.exact, entry.body) == ("yesno", (("yes",),), QUESTION)
    assert entry.documents == ("http://www.ncbi.nlm.nih.gov/pubmed/1",)
    assert [snippet.text for snippet in entry.snippets]
    changed = found[corrected]
    assert (changed.exact, changed.ideal) == ((("no",),), ("Only in mice.",))
    assert [document.rpartition("/")[2] for document in changed.documents] == ["2", "3"]
    # Only the correction of a rejected answer is gold.
    assert (found[listed].exact, found[listed].ideal) == (
        (("imatinib", "gleevec"), ("dasatinib",)),
        (),
    )
    examples = {
        example.id: example for example in store_examples(tmp_path / "memory", [gold]).examples
    }
    assert (examples[approved].body, examples[approved].exact) == (QUESTION, "yes")
    assert examples[approved].ideal == entry.ideal[0]
    assert (examples[corrected].ideal, examples[corrected].exact) == ("Only in mice.", "no")


def test_invalid_feedback_is_422(http: TestClient) -> None:
    places = {kind: stored(http, type=kind) for kind in ("yesno", "summary", "list")}
    for kind, said, message in [
        ("yesno", {"rating": "maybe"}, "rating"),
        ("yesno", {"rating": "up", "exact": [["yes"]]}, "exact: must be yes or no"),
        ("summary", {"rating": "up", "exact": "yes"}, "exact: must be left out"),
        ("list", {"rating": "up", "exact": "yes"}, "exact: must be a list of items"),
        ("yesno", {"rating": "up", "note": "x" * 5001}, "at most 5000 characters"),
        ("yesno", {"rating": "up", "pmids": [0]}, "pmids.0"),
        ("yesno", {"rating": "up", "stars": 5}, "stars"),
    ]:
        assert_refused(say(http, places[kind], **said), message)


def test_feedback_belongs_to_a_stored_answer_and_is_limited_in_number(
    http: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serve.saved.feedback.MOST_ON_AN_ANSWER", 3)
    assert say(http, "0" * 32, rating="up").status_code == 404
    place = stored(http)
    statuses = [say(http, place, rating="up", note=f"{n}").status_code for n in range(4)]
    assert statuses == [201, 201, 201, 409]
    assert len(http.get("/v1/feedback").json()["feedback"]) == 3
    assert http.delete(f"/v1/answers/{place}").status_code == 204
    assert http.get("/v1/feedback").json()["feedback"] == []
    assert say(http, place, rating="up").status_code == 404


def test_feedback_is_visible_to_its_author_and_the_answers_owner(keyed: TestClient) -> None:
    http, (alice, bob, carol) = keyed, KEYS.values()
    place = http.post("/v1/answer", json=ASKED, headers=alice).json()["answer_id"]
    path = f"/v1/answers/{place}/feedback"
    given = http.post(path, json={"rating": "down", "exact": "no"}, headers=bob).json()["id"]
    seen = {
        name: [item["mine"] for item in http.get("/v1/feedback", headers=key).json()["feedback"]]
        for name, key in KEYS.items()
    }
    assert seen == {"alice": [False], "bob": [True], "carol": []}
    assert http.get("/v1/feedback/gold", headers=carol).json() == {"questions": []}
    assert http.delete(f"/v1/feedback/{given}", headers=carol).status_code == 404
    assert http.delete(f"/v1/feedback/{given}", headers=alice).status_code == 204
    assert http.get("/v1/feedback", headers=bob).json()["feedback"] == []
