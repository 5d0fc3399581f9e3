from __future__ import annotations

import signal
import stat
from pathlib import Path

import pytest
from sqlalchemy import select

from cluster.errors import InputError
from serve.saved.database import Database
from serve.saved.saved_error import SavedError
from serve.saved.stored_answers import AskedWith
from serve.saved.tables import FACTS
from tests.serve.answering import answer
from tests.serve.saved.kept import saved_at, settings_at
from tests.serve.script_process import start_script

STORING = """
import sys
from pathlib import Path
from serve.saved.stored_answers import AskedWith
from tests.serve.answering import answer
from tests.serve.saved.kept import saved_at

store = saved_at(Path(sys.argv[1])).answers
for number in range(int(sys.argv[2])):
    kept = store.keep(answer(f"Question {number}?"), AskedWith({}, {}, {}), sys.argv[3])
    print(kept.answer_id, flush=True)
"""


@pytest.mark.process
@pytest.mark.usefixtures("each_database")
def test_two_processes_create_and_write_the_database_concurrently(tmp_path: Path) -> None:
    both = [start_script(STORING, tmp_path, 25, owner) for owner in ("alice", "bob")]
    printed = [process.communicate(timeout=60)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    store = saved_at(tmp_path).answers
    for owner, ids in zip(("alice", "bob"), printed, strict=True):
        assert {row.id for row in store.list(owner, 200)} == set(ids)
        assert len(ids) == 25


@pytest.mark.process
@pytest.mark.usefixtures("each_database")
def test_acknowledged_answers_survive_a_kill(tmp_path: Path) -> None:
    with start_script(STORING, tmp_path, 10_000, "alice") as process:
        assert process.stdout is not None
        stored = [process.stdout.readline().strip() for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        stored += process.stdout.read().split()
    kept = {row.id for row in saved_at(tmp_path).answers.list("alice", 200)}
    # The kill may truncate the last line, which then does not acknowledge an answer.
    assert {line for line in stored if len(line) == 32} <= kept
    assert len(kept) - len(stored) <= 1


def test_sqlite_files_are_private_and_writes_are_durable(tmp_path: Path) -> None:
    saved = saved_at(tmp_path)
    with saved.database.read() as connection:
        pragmas = ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
        settings = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
    assert settings == ["wal", 2, 1, 1]
    with saved.database.write():
        kept = list((tmp_path / "saved").iterdir())
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in kept}
    assert {"citeray.db", "citeray.db-wal"} <= found.keys()
    assert set(found.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "saved").stat().st_mode) == 0o700


@pytest.mark.usefixtures("each_database")
def test_failed_write_is_rolled_back(tmp_path: Path) -> None:
    database = saved_at(tmp_path).database

    def write_half() -> None:
        with database.write() as connection:
            connection.execute(FACTS.insert().values(name="half", value="1"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    with database.read() as connection:
        names = connection.scalars(select(FACTS.c.name)).all()
    assert names == ["schema"]


def test_unusable_database_file_is_named_and_unchanged(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("my own notes, which are no database at all" * 9)
    database = Database(f"sqlite:///{notes}/citeray.db")
    with pytest.raises(SavedError, match="notes") as caught, database.read():
        pass
    assert caught.value.status in (503, 507)
    database = Database(f"sqlite:///{notes}")
    with pytest.raises(SavedError, match="not a database") as caught, database.write():
        pass
    assert caught.value.status == 503
    assert notes.read_text().startswith("my own notes")


@pytest.mark.usefixtures("each_database")
def test_schema_of_another_version_is_refused(tmp_path: Path) -> None:
    database = saved_at(tmp_path).database
    with database.write() as connection:
        connection.execute(FACTS.update().values(value="99"))
    with pytest.raises(SavedError, match="has form 99"), saved_at(tmp_path).database.read():
        pass


@pytest.mark.usefixtures("each_database")
def test_database_error_does_not_quote_stored_text(tmp_path: Path) -> None:
    database = saved_at(tmp_path).database
    with pytest.raises(SavedError) as caught, database.write() as connection:
        connection.exec_driver_sql("INSERT INTO nowhere VALUES (?)", ("a secret question",))
    assert "secret" not in f"{caught.value}{caught.value.__cause__}"


def test_deleted_text_is_overwritten_on_disk(tmp_path: Path) -> None:
    store = saved_at(tmp_path).answers
    word = "Zyxomylin"
    asked = AskedWith({"question": word}, {}, {})
    for number in range(50):
        store.keep(answer(f"Other question {number}?"), AskedWith({}, {}, {}), "")
    kept = store.keep(answer(f"Does {word} help?" * 50), asked, "")

    def on_disk() -> bool:
        return any(word.encode() in path.read_bytes() for path in (tmp_path / "saved").iterdir())

    assert on_disk()
    store.delete(kept.answer_id, "")
    assert not on_disk()


def test_invalid_database_url_is_bad_input(tmp_path: Path) -> None:
    for url, said in [
        ("postgresql://alice:secret@host/db", "PGPASSWORD"),
        ("mysql://host/db", "use sqlite:///"),
        ("sqlite://host/db", "three slashes"),
    ]:
        with pytest.raises(InputError, match=said) as caught:
            settings_at(tmp_path, url=url)
        assert "serve.saved.url" in str(caught.value)
    database = Database("postgresql+nodriver://u@h/d")
    with pytest.raises(InputError, match="pip install psycopg"), database.read():
        pass
