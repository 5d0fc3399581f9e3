import io
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from ray.exceptions import ActorDiedError
from rich.console import Console

from cluster.errors import CiteRayError, InputError
from cluster.settings.settings import load_settings
from cluster.settings.stages.serving import ServeSettings
from serve import app
from serve.client import run_graph
from serve.client.run_graph import PROXY_ENVIRONMENT, await_ready, hold_port, require_vllm
from tests.commands.test_cli import citeray, the_one_line
from tests.serve.http_server import free_port
from tests.small_index import citation, make_index

pytestmark = pytest.mark.model


def at(host: str, port: int) -> ServeSettings:
    return load_settings().serve.model_copy(update={"host": host, "port": port})


@pytest.fixture
def taken() -> Iterator[int]:
    """Port on which another program listens, with SO_REUSEPORT as in Serve's proxy."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_hold_port_reserves_the_port_for_serve() -> None:
    here = at("127.0.0.1", free_port())
    with hold_port(here):
        with pytest.raises(InputError, match="listens there"), hold_port(here):
            pass
        with socket.socket() as proxy:
            proxy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            proxy.bind((here.host, here.port))
            proxy.listen()
            socket.create_connection((here.host, here.port), timeout=5).close()
    with hold_port(here):
        pass


def test_missing_model_is_named_before_ray_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_graph, "ray_session", lambda _: pytest.fail("Ray was started"))
    settings = load_settings(None, ["encoder.model=file:/nowhere", "encoder.adapter="])
    log = Console(file=io.StringIO())
    with pytest.raises(CiteRayError, match="/nowhere"), run_graph.serving(settings, log):
        pass


def test_hold_port_rejects_unusable_addresses_with_a_fix(taken: int) -> None:
    said = f"serve.port {taken} on 127.0.0.1: another program, .*--set serve.port={taken + 1}"
    with pytest.raises(InputError, match=said), hold_port(at("127.0.0.1", taken)):
        pass
    said = "on 192.0.2.1: Cannot assign"
    with pytest.raises(InputError, match=said), hold_port(at("192.0.2.1", free_port())):
        pass


# Nightly, because only another release of Ray can change the result.
@pytest.mark.nightly
def test_ray_reads_the_proxy_environment_variables() -> None:
    # If Ray renamed a variable, proxies on busy machines would time out after 15 s again.
    read = "PROXY_HEALTH_CHECK_PERIOD_S, PROXY_READY_CHECK_TIMEOUT_S"
    code = f"from ray.serve._private.constants import {read}; print({read})"
    ended = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | PROXY_ENVIRONMENT, capture_output=True
    )
    assert ended.stdout == b"1.0 20.0\n"


LATE = TimeoutError("HTTP proxies not available after 60s.")


@pytest.mark.parametrize("error", [LATE, ActorDiedError()])
def test_late_proxy_does_not_stop_the_start(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy = Mock(side_effect=LATE)
    monkeypatch.setattr(app.ray_serve, "start", Mock(side_effect=error))
    monkeypatch.setattr(app.ray_serve, "run_many", deploy)
    app._run(None, "citeray", "/", load_settings())
    assert [target.name for target in deploy.call_args.args[0]] == ["citeray"]
    monkeypatch.setattr(app, "build_llm_app", lambda settings: None)
    monkeypatch.setattr(app.ray_serve, "run", Mock(side_effect=LATE))
    with pytest.raises(CiteRayError, match=r"cannot start: HTTP proxies not available"):
        app.run_models(load_settings())


def test_await_ready_names_the_stages_that_are_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_graph, "POLL_S", 0.01)
    monkeypatch.setattr(run_graph, "START_DEADLINE_S", 0.1)
    monkeypatch.setattr(run_graph, "failure", str)
    monkeypatch.setattr(run_graph, "starting", list)
    log = Console(file=io.StringIO())
    answers = iter([None, {"encoder": "ready", "shard-0000": "starting"}])
    for waited in ("the HTTP proxy", "shard-0000"):
        found = next(answers)
        monkeypatch.setattr(run_graph, "_stages", lambda *_, found=found: found)
        with pytest.raises(CiteRayError, match=f"for {waited}; .*run the same command again"):
            await_ready(load_settings(), log)


def test_steps_of_starting_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    states = iter(
        [None, {"encoder": "ready", "writer": "loading"}, {"encoder": "ready", "writer": "ready"}]
    )
    for name, value in {
        "POLL_S": 0,
        "WAITING_LINE_S": 0,
        "deploy": lambda _: None,
        "failure": str,
        "starting": lambda: ["writer", "gateway"],
        "_stages": lambda *_: next(states),
        "unlimited_headers": lambda _: "",
    }.items():
        monkeypatch.setattr(run_graph, name, value)
    log = Console(file=io.StringIO(), width=1000)
    run_graph.start_graph(load_settings(), log)
    first, *steps = log.file.getvalue().splitlines()
    assert "encoder citeray:bioasq-encoder, llm citeray:writer" in first
    assert [step.partition(" s  ")[2] for step in steps] == [
        "still loading: gateway, writer",
        "encoder ready (1 of 2)",
        "still loading: writer",
        "writer ready (2 of 2)",
    ]


def test_second_serve_exits_with_2(taken: int, tmp_path: Path) -> None:
    make_index(tmp_path, [citation(1, "Metformin activates AMPK.")])
    done = citeray("serve", "--set", f"index.path={tmp_path}", "--set", f"serve.port={taken}")
    assert done.returncode == 2
    assert f"serve.port {taken}" in the_one_line(done)


def test_missing_vllm_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_graph, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"extra \[llm-cpu\] or \[gpu\], or --set llm.kind=none"):
        require_vllm(load_settings(overrides=["llm.kind=vllm"]))
    require_vllm(load_settings(overrides=["llm.kind=none"]))
