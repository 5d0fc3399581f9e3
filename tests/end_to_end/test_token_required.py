"""What a running `citeray serve` reveals through its ports, files, logs and processes.

Attackers have no token and no key. Logs may hold neither of them, nor a question.
"""

from __future__ import annotations

import pickle
import re
from itertools import product
from pathlib import Path

import grpc
import httpx
import psutil
import pytest
from ray.serve.generated.serve_pb2 import ASGIRequest

from tests.commands.run_here import run_here
from tests.end_to_end.command import CANARIES, KEY, with_settings
from tests.end_to_end.conftest import SampleIndex
from tests.end_to_end.running_service import Service
from tests.security.planted import Planted

pytestmark = [pytest.mark.durability, pytest.mark.ray, pytest.mark.nightly]

QUESTION = "Does canary-question metformin activate AMPK?"
GUARDED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNAVAILABLE)


@pytest.fixture(scope="module")
def served(service: Service) -> Service:
    """The service after it has searched and answered a question that no file may hold."""
    for path in ("/v1/search", "/v1/answer"):
        service.http.post(path, json={"question": QUESTION}).raise_for_status()
    return service


def port_of(served: Service) -> int:
    assert served.http.base_url.port
    return served.http.base_url.port


def listening(served: Service) -> dict[tuple[str, int], str]:
    """Return the name of each listening process by its address."""
    found: dict[tuple[str, int], str] = {}
    for process in served.tree:
        name = process.cmdline()[0] if process.cmdline()[0].startswith("ray::") else process.name()
        for socket_ in process.net_connections("inet"):
            if socket_.status == psutil.CONN_LISTEN:
                found[(socket_.laddr.ip, socket_.laddr.port)] = name
    return found


def is_loopback(ip: str) -> bool:
    return ip == "::1" or ip.removeprefix("::ffff:").startswith("127.")


def test_only_replicas_listen_beyond_loopback(served: Service) -> None:
    beyond = {
        name.partition(":citeray:")[0]
        for (ip, _), name in listening(served).items()
        if not is_loopback(ip)
    }
    # Ray Serve binds a replica's gRPC server to every address, whatever the node's is.
    assert beyond <= {"ray::ServeReplica"}, listening(served)


METHODS = (
    "/ray.serve.ASGIService/HandleRequest",
    "/ray.serve.ASGIService/HandleRequestWithRejection",
    "/ray.rpc.NodeInfoGcsService/CheckAlive",
    "/ray.rpc.InternalKVGcsService/InternalKVGet",
    "/ray.rpc.JobInfoGcsService/AddJob",
    "/ray.rpc.ActorInfoGcsService/CreateActor",
    "/ray.rpc.NodeManagerService/GetNodeStats",
    "/ray.rpc.NodeManagerService/RequestWorkerLease",
    "/ray.rpc.CoreWorkerService/PushTask",
    "/ray.rpc.CoreWorkerService/Exit",
    "/ray.rpc.ObjectManagerService/Push",
    "/ray.rpc.RuntimeEnvAgentService/GetOrCreateRuntimeEnv",
)


def ask(address: str, method: str, payload: bytes, token: str = "") -> grpc.StatusCode:
    """Return the status of a raw gRPC call."""
    metadata = [("authorization", f"Bearer {token}")] if token else []
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(method)(payload, timeout=10, metadata=metadata)
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("token", ["", "f" * 64], ids=["without", "wrong"])
def test_ports_refuse_calls_without_the_token(served: Service, tmp_path: Path, token: str) -> None:
    """Each call carries a pickle that creates a file if it is loaded."""
    mark = tmp_path / "the-code-was-run"
    pickled = pickle.dumps(Planted(mark))
    payload = ASGIRequest(
        pickled_request_metadata=pickled, request_args=pickled
    ).SerializeToString()
    answered, refused = [], set()
    for (ip, port), name in listening(served).items():
        if port == port_of(served):
            continue
        for method in METHODS:
            host = "127.0.0.1" if is_loopback(ip) or ip in ("::", "0.0.0.0") else ip
            # Ray's calls are valid without a payload, so that only the token is missing.
            code = ask(f"{host}:{port}", method, payload if ".serve." in method else b"", token)
            if code is grpc.StatusCode.UNAUTHENTICATED:
                refused.add(name.partition(":citeray:")[0])
            if code in (grpc.StatusCode.OK, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN):
                answered.append((name, method, code))
    assert answered == []
    assert {"gcs_server", "raylet", "ray::ProxyActor", "ray::ServeReplica"} <= refused
    assert not mark.exists()


HTTP = (
    ("GET", "/"),
    ("GET", "/metrics"),
    ("GET", "/api/local_raylet_healthz"),
    ("GET", "/logs"),
    ("POST", "/api/job_agent/jobs/"),
    ("GET", "/api/serve/applications/"),
    ("POST", "/get_or_create_runtime_env"),
    ("POST", "/delete_runtime_env_if_possible"),
)


def test_http_without_a_token_gets_only_metrics_and_health(served: Service) -> None:
    answered = set()
    found = {
        port: name
        for (ip, port), name in listening(served).items()
        if port != port_of(served) and is_loopback(ip)
    }
    # One client for all requests, because each new client would load the certificates again.
    with httpx.Client(timeout=10) as http:
        for (port, name), (method, path) in product(found.items(), HTTP):
            try:
                reply = http.request(method, f"http://127.0.0.1:{port}{path}")
            except httpx.HTTPError:
                continue
            # The metrics server replies with metrics on every path.
            harmless = reply.text.startswith("# ") or path.endswith("healthz") or not reply.text
            if reply.is_success and not harmless:
                answered.add((name.partition(":citeray:")[0], method, path, reply.text[:80]))
    assert answered == set()


def test_a_replica_asks_for_the_token_before_it_unpickles(served: Service, tmp_path: Path) -> None:
    """With the token the same call runs, which shows that the test above would detect it."""
    token = (served.folder / "home" / ".ray" / "auth_token").read_text()
    names = {port: name for (_, port), name in listening(served).items()}
    ports = [port for port, name in names.items() if name.endswith(":VersionLease")]
    marks = {}
    for given in ("", token):
        marks[given] = tmp_path / f"run-{len(given)}"
        pickled = pickle.dumps(Planted(marks[given]))
        request = ASGIRequest(pickled_request_metadata=pickled).SerializeToString()
        codes = {
            ask(f"127.0.0.1:{port}", "/ray.serve.ASGIService/HandleRequest", request, given)
            for port in ports
        }
        if not given:
            assert codes & set(GUARDED)
    assert not marks[""].exists()
    assert marks[token].exists()


def test_token_and_ray_folder_are_readable_by_the_owner_only(served: Service) -> None:
    assert (served.folder / "home" / ".ray" / "auth_token").stat().st_mode & 0o077 == 0
    assert (served.private / "ray" / "session_latest" / "logs" / "serve").is_dir()
    assert served.private.stat().st_mode & 0o777 == 0o700


def test_no_secret_and_no_question_is_written_anywhere(
    served: Service, sample_index: SampleIndex
) -> None:
    token = (served.folder / "home" / ".ray" / "auth_token").read_text()
    wanted = re.compile(f"canary-|{token}".encode())
    logs = served.ray_folder.rglob("*")
    written = (p for p in served.folder.rglob("*") if p.name != "auth_token")
    guilty = [
        str(path)
        for path in (*logs, *written, *sample_index.path.rglob("*"))
        if path.is_file() and not path.is_symlink() and wanted.search(path.read_bytes())
    ]
    assert guilty == []
    assert "canary-" not in sample_index.built.stdout + sample_index.built.stderr


def test_command_lines_hold_no_secret(served: Service) -> None:
    names = {" ".join(process.cmdline()) for process in served.tree}
    assert len(names) > 10
    assert not [name for name in names if "canary-" in name or KEY in name]


@pytest.mark.parametrize("path", ["/readyz", "/healthz", "/metrics", "/openapi.json", "/v1/models"])
def test_replies_hold_no_secret_and_no_question(served: Service, path: str) -> None:
    headers = {"X-API-Key": KEY}
    reply = httpx.get(f"{served.http.base_url}{path}", headers=headers, timeout=60)
    assert reply.is_success
    assert "canary-" not in reply.text


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/v1/batches", "/v1/citations/1"])
def test_requests_without_a_key_get_401(served: Service, path: str) -> None:
    assert httpx.get(f"{served.http.base_url}{path}", timeout=60).status_code == 401


def test_index_info_holds_no_secret(served: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CANARIES.items():
        monkeypatch.setenv(name, value)
    words = with_settings(["index", "info", "--json"], served.settings)
    code, stdout, stderr = run_here(*words)
    assert code == 0, stderr
    assert "canary-" not in stdout + stderr
