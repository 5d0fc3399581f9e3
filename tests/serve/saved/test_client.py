"""What users keep, from Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cluster.settings.settings import load_settings
from serve.client.call_endpoint import BadRequestError
from serve.client.python_client import CiteRay
from serve.http.api import create_api
from tests.serve.http_server import serving
from tests.serve.saved.kept import saved_at
from tests.serve.service import SmallService

QUESTION = "Does metformin activate AMPK?"


def test_what_is_kept_is_read_and_written_as_typed_records(tmp_path: Path) -> None:
    api = create_api(SmallService(), load_settings().serve, saved=saved_at(tmp_path))
    with serving(api) as port, CiteRay(f"http://127.0.0.1:{port}") as citeray:
        answer = citeray.answer(QUESTION, type="yesno", store=True)
        kept = citeray.stored_answer(answer.answer_id)
        assert kept.request["question"] == QUESTION
        assert [row.id for row in citeray.stored_answers(limit=1).answers] == [kept.id]
        replayed = citeray.replay(kept.id)
        assert (replayed.comparison.same_text, replayed.now.exact) == (True, "yes")
        given = citeray.give_feedback(kept.id, "down", exact="no", pmids=[2])
        assert [item.id for item in citeray.feedback().feedback] == [given.id]
        assert citeray.review(given.id, "accepted").state == "accepted"
        assert citeray.feedback(state="open").feedback == []
        assert [item.id for item in citeray.feedback(rating="down").feedback] == [given.id]
        citeray.delete_answer(kept.id)
        with pytest.raises(BadRequestError, match="no stored answer"):
            citeray.stored_answer(kept.id)
        watch = citeray.watch(QUESTION, type="yesno", filters={"year_from": 1990})
        assert [item.id for item in citeray.watches()] == [watch.id]
        assert citeray.watched(watch.id).history == []
        citeray.unwatch(watch.id)
        assert citeray.watches() == []


@pytest.mark.process
def test_the_client_needs_no_database() -> None:
    code = "import sys; sys.modules['sqlalchemy'] = None; import serve.client.python_client"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
