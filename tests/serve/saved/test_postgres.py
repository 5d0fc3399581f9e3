from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from serve.saved.saved_error import SavedError
from serve.saved.stored_answers import AskedWith
from serve.saved.stores import open_saved
from tests.serve.answering import answer
from tests.serve.api import client_of
from tests.serve.saved.kept import URL_FILE, saved_at, settings_at
from tests.serve.saved.postgres_server import PostgresServer
from tests.serve.service import SmallService

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def kept_in_postgres(postgres: PostgresServer, tmp_path: Path) -> None:
    (tmp_path / URL_FILE).write_text(postgres.new_schema())


def test_nul_characters_are_stored(tmp_path: Path, service: SmallService) -> None:
    http = client_of(service, saved=saved_at(tmp_path))
    asked = {"question": "Does metformin\u0000 activate AMPK?", "store": True}
    reply = http.post("/v1/answer", json=asked)
    assert (reply.status_code, reply.json()["answer_id"] != "") == (200, True)
    assert http.get(f"/v1/answers/{reply.json()['answer_id']}").json()["answer"] == reply.json()
    where = f"/v1/answers/{reply.json()['answer_id']}/feedback"
    said = http.post(where, json={"rating": "down", "ideal": "No\u0000.", "note": "\u0000"})
    assert said.status_code == 201
    watch = http.post("/v1/watches", json={"question": asked["question"]})
    assert watch.status_code == 201
    assert http.get("/v1/watches").json()["watches"][0]["id"] == watch.json()["id"]
    assert http.get("/v1/answers?before=%00").status_code in (404, 422)
    assert http.get("/v1/watches/%00").status_code in (404, 422)


def test_question_saved_concurrently_is_stored_once(tmp_path: Path) -> None:
    begin = threading.Barrier(4)

    def add(_: int) -> str:
        saved = saved_at(tmp_path)
        begin.wait()
        return saved.watches.add("", {"question": "A?"}).id

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(add, range(4)))) == 1


def test_server_crash_loses_nothing_and_is_recovered_from(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    store = saved_at(tmp_path).answers
    kept = store.keep(answer("A?"), AskedWith({}, {}, {}), "alice")
    postgres.stop()
    try:
        with pytest.raises(SavedError, match="cannot be used now") as caught:
            store.list("alice", 5)
        assert (caught.value.status, caught.value.retry_after_s > 0) == (503, True)
        # A gateway that starts meanwhile fails in the same way.
        with pytest.raises(SavedError, match="cannot be used now"):
            saved_at(tmp_path).answers.list("alice", 5)
    finally:
        postgres.start()
    assert [row.id for row in store.list("alice", 5)] == [kept.answer_id]


def test_missing_database_is_reported_without_the_password(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "a secret word")
    url = f"postgresql+psycopg://postgres@/nowhere?host={postgres.folder}"
    settings = settings_at(tmp_path, url=url)
    saved = open_saved(settings)
    assert saved is not None
    with pytest.raises(SavedError, match='"nowhere" does not exist') as caught:
        saved.watches.list()
    assert "secret" not in str(caught.value)
