"""Access to Ray: open clusters are refused, and tokens and folders are private."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from cluster.errors import RayStartError
from cluster.ray import ray_access
from tests.serve.http_server import free_port

TOKEN_NAMES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ADDRESS")


@pytest.fixture(autouse=True)
def nobodys_ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*TOKEN_NAMES, ray_access.BEYOND_THIS_MACHINE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def token(tmp_path: Path) -> Path:
    return tmp_path / ".ray" / "auth_token"


@contextmanager
def head(*, guarded: bool) -> Iterator[str]:
    """Start a server for one call of a Ray head, which requires a token or none."""

    def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
        if guarded and not dict(context.invocation_metadata()).get("authorization"):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")
        return b""

    handlers = {"CheckAlive": grpc.unary_unary_rpc_method_handler(answer)}
    server = grpc.server(ThreadPoolExecutor(1))
    service = grpc.method_handlers_generic_handler("ray.rpc.NodeInfoGcsService", handlers)
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def test_ray_with_a_token_is_used_without_a_warning() -> None:
    with head(guarded=True) as address:
        assert ray_access.check_guarded(address) == ""


@pytest.mark.parametrize("mode", ["", "token"])
def test_ray_without_a_token_is_refused_with_the_fix(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token on this side does not protect the other."""
    monkeypatch.setenv("RAY_AUTH_MODE", mode)
    said = "asks for no token.*start every node with RAY_AUTH_MODE=token"
    with head(guarded=False) as address, pytest.raises(RayStartError, match=said):
        ray_access.check_guarded(address)


def test_ray_that_is_open_on_purpose_gets_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with head(guarded=False) as address:
        assert "asks for no token" in ray_access.check_guarded(address)
    assert not ray_access.answers_without_token(f"127.0.0.1:{free_port()}")


def test_token_is_written_with_mode_0600(token: Path) -> None:
    ray_access.keep_token_private()
    assert len(token.read_text()) == 64
    assert token.stat().st_mode & 0o777 == 0o600
    assert token.parent.stat().st_mode & 0o777 == 0o700
    assert list(token.parent.iterdir()) == [token]


def test_readable_token_file_gets_mode_0600_and_is_kept(token: Path) -> None:
    token.parent.mkdir()
    token.write_text("t" * 64)
    token.chmod(0o644)
    ray_access.keep_token_private()
    assert token.stat().st_mode & 0o777 == 0o600
    assert token.read_text() == "t" * 64


@pytest.mark.process
def test_concurrent_starts_share_one_token(token: Path) -> None:
    write = "from cluster.ray.ray_access import keep_token_private as k; k(); "
    write += f"print(open({str(token)!r}).read())"
    started = [
        subprocess.Popen([sys.executable, "-c", write], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({process.communicate()[0] for process in started}) == 1
    assert token.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("given", [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "t"}])
def test_no_token_is_written_if_authentication_is_off(
    given: dict[str, str], token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    ray_access.keep_token_private()
    assert not token.exists()


def test_unwritable_home_is_one_line(token: Path) -> None:
    token.parent.write_text("a file where the folder should be")
    with pytest.raises(RayStartError, match="set a token in RAY_AUTH_TOKEN"):
        ray_access.keep_token_private()


def test_ray_folder_belongs_to_this_user_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"citeray-{os.getuid()}"
    assert ray_access.private_folder() == str(folder / "ray")
    assert ray_access.private_folder() == str(folder / "ray")
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(RayStartError, match="others may write there"):
        ray_access.private_folder()
    # A link in its place is not followed.
    (tmp_path / "others").mkdir(mode=0o700)
    folder.rmdir()
    folder.symlink_to(tmp_path / "others")
    with pytest.raises(RayStartError, match="others may write there"):
        ray_access.private_folder()


def test_local_ray_listens_on_loopback_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    ray_access.keep_to_this_machine()
    assert ray_access.BEYOND_THIS_MACHINE not in os.environ
    monkeypatch.delenv("RAY_ADDRESS")
    # Set and delete the variable, so that monkeypatch restores it after the test.
    monkeypatch.setenv(ray_access.BEYOND_THIS_MACHINE, "")
    monkeypatch.delenv(ray_access.BEYOND_THIS_MACHINE)
    ray_access.keep_to_this_machine()
    assert os.environ[ray_access.BEYOND_THIS_MACHINE] == "0"
