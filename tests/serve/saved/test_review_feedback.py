from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from evaluation.bioasq.read_bioasq import read_gold
from serve.answer.examples.example_store import read_round
from serve.saved.stores import Saved
from serve.saved.tables import REVIEWS
from tests.commands.run_here import run_here
from tests.serve.api import client_of
from tests.serve.problem import assert_refused
from tests.serve.saved.kept import KEYS, KEYS_ENV, saved_at
from tests.serve.saved.test_feedback import ASKED, QUESTION, say, stored
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow


def review(http: TestClient, feedback_id: str, state: str, **sent: Any) -> Any:
    return http.post(f"/v1/feedback/{feedback_id}/review", json={"state": state}, **sent)


def listed(http: TestClient, query: str = "", **sent: Any) -> list[str]:
    found = http.get(f"/v1/feedback?{query}", **sent).json()["feedback"]
    return [item["id"] for item in found]


@pytest.fixture
def four(http: TestClient) -> list[str]:
    """Newest first: open correction, open rating, rejected correction, accepted correction."""
    place = stored(http)
    said = (
        {"rating": "down", "exact": "no"},
        {"rating": "up"},
        {"rating": "up", "note": "again"},
        {"rating": "down", "exact": "no", "note": "twice"},
    )
    ids = [say(http, place, **one).json()["id"] for one in said]
    review(http, ids[0], "accepted")
    review(http, ids[1], "rejected")
    return ids[::-1]


def test_feedback_can_be_reviewed_and_reopened(http: TestClient) -> None:
    given = say(http, stored(http), rating="up").json()
    assert (given["state"], given["reviewed"], given["reviewed_by"]) == ("open", None, "")
    accepted = review(http, given["id"], "accepted")
    assert (accepted.status_code, accepted.json()["state"]) == (200, "accepted")
    assert accepted.json()["reviewed"] >= given["created"]
    assert http.get("/v1/feedback").json()["feedback"] == [accepted.json()]
    assert review(http, given["id"], "rejected").json()["state"] == "rejected"
    assert review(http, given["id"], "open").json() == given


def test_feedback_list_is_filtered_by_rating_and_state(http: TestClient, four: list[str]) -> None:
    for query, places in [
        ("", [0, 1, 2, 3]),
        ("rating=up", [1, 2]),
        ("rating=down", [0, 3]),
        ("state=open", [0, 1]),
        ("state=reviewed", [2, 3]),
        ("state=accepted", [3]),
        ("state=rejected", [2]),
        ("state=open&rating=down", [0]),
    ]:
        assert listed(http, query) == [four[place] for place in places]
    for query in ("rating=maybe", "state=done", "state="):
        assert_refused(http.get(f"/v1/feedback?{query}"), query.partition("=")[0])
    assert review(http, "0" * 32, "accepted").status_code == 404
    assert review(http, four[0], "fine").status_code == 422
    # A page may start after an item that was reviewed meanwhile.
    page = http.get("/v1/feedback?state=open&limit=1").json()
    review(http, four[0], "accepted")
    assert listed(http, f"state=open&limit=1&before={page['next']}") == [four[1]]


def test_only_reviewers_see_all_feedback_and_review_it(
    service: SmallService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", KEYS_ENV)
    http = client_of(service, saved=saved_at(tmp_path, reviewers='["carol"]'))
    alice, bob, carol = KEYS.values()
    given = given_by(http, bob, rating="down", exact="no")
    assert listed(http, headers=carol) == [given]
    for key in (alice, bob):
        refused = review(http, given, "accepted", headers=key)
        assert (refused.status_code, "serve.saved.reviewers" in refused.text) == (403, True)
        assert http.get("/v1/feedback", headers=key).json()["may_review"] is False
    assert review(http, given, "accepted", headers=carol).json()["reviewed_by"] == "carol"
    (seen,) = http.get("/v1/feedback", headers=bob).json()["feedback"]
    assert (seen["state"], seen["reviewed_by"]) == ("accepted", "")
    assert http.get("/v1/feedback", headers=carol).json()["may_review"] is True
    given_by(http, alice, rating="up")
    for query, key, exact in (
        ("?state=accepted", carol, ["no"]),
        ("", carol, ["no", "yes"]),
        ("?state=accepted", alice, ["no"]),
    ):
        rows = http.get(f"/v1/feedback/gold{query}", headers=key).json()["questions"]
        assert [row["exact_answer"] for row in rows] == exact


def test_rejected_feedback_is_not_gold_and_its_review_is_deleted_with_it(
    http: TestClient, saved: Saved
) -> None:
    place = stored(http)
    say(http, place, rating="up")
    wrong = say(http, place, rating="down", exact="no").json()["id"]
    review(http, wrong, "rejected")
    (row,) = http.get("/v1/feedback/gold").json()["questions"]
    assert row["exact_answer"] == "yes"
    http.delete(f"/v1/feedback/{wrong}")
    with saved.database.read() as connection:
        assert connection.execute(REVIEWS.select()).all() == []


def given_by(http: TestClient, giver: dict[str, str], **said: Any) -> str:
    asked = http.post("/v1/answer", json=ASKED, headers=KEYS["alice"]).json()["answer_id"]
    path = f"/v1/answers/{asked}/feedback"
    return str(http.post(path, json=said, headers=giver).json()["id"])


def test_feedback_commands_review_and_export_accepted_feedback(
    http: TestClient, tmp_path: Path
) -> None:
    place, other = stored(http), stored(http, question="Does warfarin inhibit VKORC1?")
    given = say(http, place, rating="down", exact="no", ideal="Only in mice.").json()["id"]
    say(http, other, rating="up")
    url = (f"--set=serve.saved.url=sqlite:///{tmp_path}/saved/citeray.db", "--set=serve.port=9")
    gold, memory = tmp_path / "gold.json", tmp_path / "memory"
    export = ("feedback", "export", "--accepted", "-o", gold, *url)
    code, _, err = run_here(*export)
    assert (code, "0 pieces of accepted feedback" in err, gold.exists()) == (2, True, False)
    code, out, _ = run_here("feedback", "review", given, "accepted", *url)
    assert (code, out.startswith(f"{given}: accepted 20")) == (0, True)
    code, out, _ = run_here("feedback", "list", "--state", "open", *url)
    assert (given in out, "not reviewed" in out, other in out) == (False, True, True)
    code, out, _ = run_here(*export, "--json")
    assert (code, json.loads(out)["questions"]) == (0, 1)
    assert read_gold(gold)[place].exact == (("no",),)
    code, out, _ = run_here("remember", gold, "--set", f"llm.examples={memory}")
    assert (code, "1 examples" in out) == (0, True)
    (example,) = read_round(memory).examples
    assert (example.body, example.ideal, example.exact) == (QUESTION, "Only in mice.", "no")
    code, _, err = run_here("feedback", "review", "0" * 32, "accepted", *url)
    assert (code, "no feedback" in err) == (2, True)
    code, _, err = run_here("feedback", "export", "-o", gold, "--owner", "bob", *url)
    assert (code, "nothing was written" in err) == (2, True)
    code, out, err = run_here("feedback", "list", "--owner", "bob", *url)
    assert (code, out, err.startswith("no matching feedback")) == (0, "", True)
    assert run_here("feedback", "list", "--owner", "bob", *url, "--json") == (0, "[]\n", "")
    code, _, err = run_here("feedback", "list", "--set", "serve.saved.url=")
    assert (code, "nothing is stored" in err) == (2, True)


def test_database_without_the_reviews_table_is_upgraded(
    service: SmallService, saved: Saved, tmp_path: Path
) -> None:
    http = client_of(service, saved=saved)
    given = say(http, stored(http), rating="up").json()["id"]
    with saved.database.write() as connection:
        REVIEWS.drop(connection)
    saved.database.close()
    again = client_of(service, saved=saved_at(tmp_path))
    assert listed(again, "state=open") == [given]
    assert review(again, given, "accepted").status_code == 200
