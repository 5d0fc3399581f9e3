from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import ray
from ray.core.generated.common_pb2 import ActorDiedErrorContext
from ray.exceptions import ActorDiedError, RayTaskError, WorkerCrashedError

from cluster.errors import CiteRayError, RayStartError, StorageError
from cluster.ray import session
from cluster.ray.session import plain_error, ray_session
from cluster.settings.settings import RaySettings

pytestmark = pytest.mark.ray

ROOT = Path(__file__).resolve().parents[3]
# Command line with a Ray whose first process exits at once, as if memory ran out.
CANNOT_START = """
import ray._private.services as services
from commands.cli import main

services.GCS_SERVER_EXECUTABLE = "/bin/true"
main()
"""


def raised_in_a_task(cause: Exception) -> RayTaskError:
    """Return the error that the driver receives: a RayTaskError of the cause's class."""
    error: RayTaskError = RayTaskError("stage", "a long traceback", cause)
    return error.as_instanceof_cause()


def test_task_error_keeps_its_message() -> None:
    found = plain_error(raised_in_a_task(StorageError("/index: the disk is full")))
    assert type(found) is StorageError
    assert str(found) == "/index: the disk is full"
    inner = raised_in_a_task(CiteRayError("one sentence\nFailed to apply UDF"))
    assert str(plain_error(inner)) == "one sentence"
    assert str(plain_error(raised_in_a_task(inner))) == "one sentence"
    assert str(plain_error(raised_in_a_task(MemoryError()))).startswith("memory ran out; ")


DIED = ActorDiedErrorContext(
    actor_id=b"1" * 16,
    class_name="ProxyActor",
    pid=7,
    error_message="The worker died. Some common causes include: (1) memory ran out",
)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (WorkerCrashedError(), "WorkerCrashedError"),
        # Ray's own message would only be "an actor died unexpectedly".
        (ActorDiedError(DIED), "(ActorDiedError: ProxyActor: The worker died.)"),
    ],
)
def test_error_of_a_lost_process_has_its_reason_and_a_fix(error: Exception, said: str) -> None:
    message = str(plain_error(error))
    assert said in message
    assert message.endswith("; run the same command again")


def test_unexpected_errors_are_unchanged() -> None:
    assert plain_error(raised_in_a_task(KeyError("pmid"))) is None


@pytest.fixture
def build(tmp_path: Path) -> list[str]:
    """Command that builds an index of an empty source and needs Ray."""
    (tmp_path / "n1.xml").write_text("<PubmedArticleSet/>")
    command = [sys.executable, "-c", CANNOT_START, "index", "build", str(tmp_path / "n1.xml")]
    return [*command, "--set", f"index.path={tmp_path / 'index'}"]


def failure(command: list[str], **environment: str) -> str:
    """Run a command that cannot start Ray; return its only message."""
    # Seconds that Ray waits for its first process.
    given = {**os.environ, "RAY_gcs_server_port_wait_time_s": "1", **environment}
    done = subprocess.run(
        command, cwd=ROOT, env=given, capture_output=True, text=True, check=False, timeout=100
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("citeray: ")]
    return line


def test_ray_start_timeout_is_one_line(build: list[str], tmp_path: Path) -> None:
    line = failure(build, RAY_ADDRESS="")
    assert "Ray could not be started on this machine (" in line
    assert "lower ray.cpus and ray.object_store_mb" in line
    assert not (tmp_path / "index").exists()


def test_too_long_socket_path_is_one_line(build: list[str], tmp_path: Path) -> None:
    line = failure(build, RAY_ADDRESS="", RAY_TMPDIR=str(tmp_path / ("a" * 100)))
    assert "AF_UNIX path length cannot exceed" in line
    assert "name another with a short path in RAY_TMPDIR" in line


def test_file_size_limit_is_reported(build: list[str]) -> None:
    limited = ["bash", "-c", 'ulimit -f 100000; exec "$@"', "bash", *build]
    line = failure(limited, RAY_ADDRESS="")
    assert "ulimit -f: this shell limits files to 97 MiB" in line
    assert "busy" not in line


def test_ray_address_without_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(session, "CONNECT_TIMEOUTS_S", (0.1, 0.2))
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        # Linux drops connections when the backlog of a socket is full.
        full.listen(0)
        for client in (first, second):
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        address = f"ray://127.0.0.1:{full.getsockname()[1]}"
        with pytest.raises(RayStartError, match=f"^RAY_ADDRESS={address}: no Ray can be joined"):
            session._await_address(address)
    assert f"waiting for an answer of RAY_ADDRESS={address}" in caplog.text
    for other in ("auto", "127.0.0.1:9", "local"):
        session._await_address(other)


@pytest.mark.nightly
def test_unreachable_ray_address_is_named(build: list[str]) -> None:
    line = failure(build, RAY_ADDRESS="127.0.0.1:9")
    assert line.startswith("citeray: RAY_ADDRESS=127.0.0.1:9: no Ray can be joined there (")


def test_ray_messages_go_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ray, "init", lambda **_: print("workers have been started"))
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(gcs_address=""))
    monkeypatch.setattr(ray, "shutdown", lambda: print("workers have ended"))
    with ray_session(RaySettings(cpus=1, object_store_mb=128)):
        print("a step of the work")
    heard = capsys.readouterr()
    assert heard.out == ""
    assert heard.err.splitlines() == [
        "workers have been started",
        "a step of the work",
        "workers have ended",
    ]
