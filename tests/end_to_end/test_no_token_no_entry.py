"""What a running `citeray serve` shows to whom: its ports, its files, its logs, its processes.

A stranger has no token and no key. Whoever may read logs must find neither in them, nor a question.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import httpx
import psutil
import pytest
from ray.serve.generated.serve_pb2 import ASGIRequest

from pipelines.sample.write_sample import write_sample
from tests.end_to_end.command import BIN, ROOT, environment, run, small_settings, with_settings
from tests.end_to_end.test_serve import await_ready
from tests.serve.http_server import free_port

pytestmark = [pytest.mark.durability, pytest.mark.ray, pytest.mark.nightly]

KEY = "canary-" + "k" * 32
# Nothing that is written, shown or logged may hold one of these.
CANARIES = {
    "CITERAY_API_KEYS": f"alice:{KEY}",
    "AWS_ACCESS_KEY_ID": "canary-aws-id",
    "AWS_SECRET_ACCESS_KEY": "canary-aws-secret",
    "LLM_KEY": "canary-llm",
    "NCBI_API_KEY": "canary-ncbi",
}
QUESTION = "Does canary-question metformin activate AMPK?"
GUARDED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNAVAILABLE)


@dataclass(frozen=True)
class Served:
    process: psutil.Process
    url: str
    port: int
    ray_folder: Path
    folder: Path
    settings: list[str]
    said: Path

    @property
    def private(self) -> Path:
        return self.ray_folder / f"citeray-{os.getuid()}"

    @property
    def tree(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("strangers")
    source = str(write_sample(folder / "sample").sources[0])
    # Short: Ray's sockets lie in it, and a socket's path has at most 107 characters.
    ray_folder = Path(tempfile.mkdtemp(prefix="cr-", dir="/tmp"))
    port = free_port()
    settings = [*small_settings(folder / "index", encoder, 1), f"serve.port={port}"]
    settings += ["llm.kind=url", "llm.url=http://127.0.0.1:9/v1", "llm.model_id=m"]
    settings += ["llm.api_key_env=LLM_KEY", f"serve.batches.folder={folder / 'batches'}"]
    home = {"HOME": str(folder / "home"), "TMPDIR": str(ray_folder)}
    extra = {**CANARIES, **home, "CITERAY_MODELS": str(folder / "models")}
    built = run(with_settings([str(BIN / "citeray"), "index", "build", source], settings), extra)
    assert built.returncode == 0, built.stderr
    with (folder / "serve.out").open("w") as said:
        process = subprocess.Popen(
            with_settings([str(BIN / "citeray"), "serve"], settings),
            cwd=ROOT, env=environment(extra), stdout=said, stderr=said,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    headers = {"X-API-Key": KEY}
    try:
        await_ready(url, process, headers)
        with httpx.Client(base_url=url, headers=headers, timeout=60) as http:
            for path in ("/v1/search", "/v1/answer"):
                http.post(path, json={"question": QUESTION}).raise_for_status()
        yield Served(
            psutil.Process(process.pid), url, port, ray_folder, folder, settings,
            folder / "serve.out",
        )  # fmt: skip
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=180)
        shutil.rmtree(ray_folder, ignore_errors=True)


def listening(served: Served) -> dict[tuple[str, int], str]:
    """Every address at which a process of the tree listens, and that process' name."""
    found: dict[tuple[str, int], str] = {}
    for process in served.tree:
        name = process.cmdline()[0] if process.cmdline()[0].startswith("ray::") else process.name()
        for socket_ in process.net_connections("inet"):
            if socket_.status == psutil.CONN_LISTEN:
                found[(socket_.laddr.ip, socket_.laddr.port)] = name
    return found


def is_loopback(ip: str) -> bool:
    return ip == "::1" or ip.removeprefix("::ffff:").startswith("127.")


def test_beyond_loopback_only_the_replicas_listen_to_each_other(served: Served) -> None:
    beyond = {
        name.partition(":citeray:")[0]
        for (ip, _), name in listening(served).items()
        if not is_loopback(ip)
    }
    # Ray Serve binds a replica's gRPC server to every address, whatever the node's is.
    assert beyond <= {"ray::ServeReplica"}, listening(served)


class Planted:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return (Path.touch, (self.mark,))


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
    """What a raw gRPC call to `address` ends with."""
    metadata = [("authorization", f"Bearer {token}")] if token else []
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            channel.unary_unary(method)(payload, timeout=10, metadata=metadata)
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("token", ["", "f" * 64], ids=["without", "wrong"])
def test_no_port_takes_a_call_without_the_right_token(
    served: Served, tmp_path: Path, token: str
) -> None:
    """Each call carries a pickle that would create a file where it is loaded."""
    mark = tmp_path / "the-code-was-run"
    pickled = pickle.dumps(Planted(mark))
    payload = ASGIRequest(
        pickled_request_metadata=pickled, request_args=pickled
    ).SerializeToString()
    answered, refused = [], set()
    for (ip, port), name in listening(served).items():
        if port == served.port:
            continue
        for method in METHODS:
            host = "127.0.0.1" if is_loopback(ip) or ip in ("::", "0.0.0.0") else ip
            # Ray's own calls are well-formed when empty, so that only a token can be missing.
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


def test_over_http_only_figures_and_health_are_told_without_a_token(served: Served) -> None:
    told = set()
    for (ip, port), name in listening(served).items():
        if port == served.port or not is_loopback(ip):
            continue
        for method, path in HTTP:
            try:
                reply = httpx.request(method, f"http://127.0.0.1:{port}{path}", timeout=10)
            except httpx.HTTPError:
                continue
            # Prometheus' own server gives its figures at every path.
            harmless = reply.text.startswith("# ") or path.endswith("healthz") or not reply.text
            if reply.is_success and not harmless:
                told.add((name.partition(":citeray:")[0], method, path, reply.text[:80]))
    assert told == set()


def test_a_replica_asks_for_the_token_before_it_unpickles(served: Served, tmp_path: Path) -> None:
    """With the token the same call does run: so the test above would see it."""
    token = (served.folder / "home" / ".ray" / "auth_token").read_text()
    ports = [port for (_, port), name in listening(served).items() if name.endswith(":Turns")]
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


def test_only_its_user_may_read_the_token_and_rays_folder(served: Served) -> None:
    assert (served.folder / "home" / ".ray" / "auth_token").stat().st_mode & 0o077 == 0
    assert (served.private / "ray" / "session_latest" / "logs" / "serve").is_dir()
    assert served.private.stat().st_mode & 0o777 == 0o700


def test_no_secret_and_no_question_is_written_anywhere(served: Served) -> None:
    token = (served.folder / "home" / ".ray" / "auth_token").read_text()
    wanted = re.compile(f"canary-|{token}".encode())
    logs = served.ray_folder.rglob("*")
    written = (p for p in served.folder.rglob("*") if p.name != "auth_token")
    guilty = [
        str(path)
        for path in (*logs, *written)
        if path.is_file() and not path.is_symlink() and wanted.search(path.read_bytes())
    ]
    assert guilty == []


def test_no_secret_is_in_the_name_of_a_process(served: Served) -> None:
    names = {" ".join(process.cmdline()) for process in served.tree}
    assert len(names) > 10
    assert not [name for name in names if "canary-" in name or KEY in name]


@pytest.mark.parametrize("path", ["/readyz", "/healthz", "/metrics", "/openapi.json", "/v1/models"])
def test_no_secret_and_no_question_is_in_a_reply(served: Served, path: str) -> None:
    reply = httpx.get(f"{served.url}{path}", headers={"X-API-Key": KEY}, timeout=60)
    assert reply.is_success
    assert "canary-" not in reply.text


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/v1/batches", "/v1/citations/1"])
def test_without_a_key_no_path_tells_anything(served: Served, path: str) -> None:
    assert httpx.get(f"{served.url}{path}", timeout=60).status_code == 401


def test_what_the_index_says_of_itself_holds_no_secret(served: Served) -> None:
    command = with_settings([str(BIN / "citeray"), "index", "info", "--json"], served.settings)
    told = run(command, CANARIES)
    assert told.returncode == 0, told.stderr
    assert "canary-" not in told.stdout + told.stderr
