from __future__ import annotations

from serve.http.workbench.feedback_api import given
from serve.saved.feedback import Feedback
from serve.saved.opinion import Opinion, Review


def test_feedback_states_its_times_and_names_reviewers_only_on_request() -> None:
    answer = {
        "question": {"body": "Why?", "type": "summary"},
        "verdict": "answered",
        "system": "citeray",
        "index_version": "v000001",
    }
    review = Review("accepted", "carol", 1_700_000_060.0)
    item = Feedback("f" * 32, "", 1_700_000_000.0, "a" * 32, Opinion("up"), answer, review)
    form = given(item)
    assert (form.created, form.reviewed) == (
        "2023-11-14T22:13:20+00:00",
        "2023-11-14T22:14:20+00:00",
    )
    assert (form.state, form.reviewed_by) == ("accepted", "")
    assert given(item, reviews=True).reviewed_by == "carol"
