"""Someone who follows the guide: runs its commands in a shell, against a stand-in cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.k8s.chart import COMMIT, K8S, values_file
from tests.k8s.walk_through import stand_in_helm, stand_in_kubectl
from tests.k8s.walk_through.state import Object, RefusedError, fresh
from tests.serve.http_server import free_port

TEXT = (K8S / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```([a-z]*)\n(.*?)^ *```$", TEXT, re.M | re.S)
[MINE] = [block for language, block in BLOCKS if language == "yaml"]
LINES = [
    line.strip()
    for language, block in BLOCKS
    if not language
    for line in block.splitlines()
    if line.strip()
]
# Prometheus' operator is there, as the guide has it, and KubeRay's not yet.
GROUPS = ("monitoring.coreos.com",)
STORE = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything", "HF_TOKEN": ""}
# Hands its words to the test, says what it is told, and stays where it is told to.
TOOL = """#!/bin/sh
reply=$(mktemp)
trap 'rm -f "$reply"' EXIT
status=$(printf '%s\\0' "$@" |
  curl -s --noproxy '*' --data-binary @- -o "$reply" -w '%{http_code}' URL/"${0##*/}")
case $status in
  200) cat "$reply" ;;
  202) cat "$reply"; exec sleep 600 ;;
  *) cat "$reply" >&2; exit 1 ;;
esac
"""
CITERAY = '#!/bin/sh\nexec PYTHON -m commands.cli "$@"\n'


def step(start: str) -> str:
    """The guide's one command that begins so."""
    [found] = [line for line in LINES if line.startswith(start)]
    return found


class Walk:
    """A folder with the chart, `mine.yaml` and the tools on its path; `size` is a values file."""

    def __init__(
        self, folder: Path, size: str, groups: Sequence[str], plan: Mapping[str, Any], url: str
    ) -> None:
        self.folder, self.size = folder, size
        self.state = fresh(groups, plan)
        self.port = free_port()
        (folder / "k8s").symlink_to(K8S)
        tools = folder / "bin"
        tools.mkdir()
        for name, text in {"kubectl": TOOL, "helm": TOOL, "citeray": CITERAY}.items():
            (tools / name).write_text(text.replace("URL", url).replace("PYTHON", sys.executable))
            (tools / name).chmod(0o755)
        self.environment = {
            **os.environ, **STORE, "CITERAY_POLL_S": "0", "NO_PROXY": "*",
            "PYTHONPATH": str(K8S.parent), "PATH": f"{tools}:{os.environ['PATH']}",
        }  # fmt: skip
        self.write_mine()

    def answer(self, tool: str, words: Sequence[str], stack: ExitStack) -> tuple[int, str]:
        """The status and the text for one call of a tool."""
        try:
            if tool == "helm":
                return 200, stand_in_helm.run(self.state, words, self.folder) + "\n"
            if words[0] == "port-forward":
                server = stand_in_kubectl.forward(self.state, words)
                stack.enter_context(serving(server))
                return 202, f"Forwarding from 127.0.0.1:{self.port} -> 8000\n"
            said = stand_in_kubectl.run(self.state, words)
            if words[:2] == ["create", "job"]:
                stand_in_kubectl.run_job(self.state, words[2], self.environment)
            return 200, said + ("" if words[0] == "get" else "\n")
        except RefusedError as error:
            return 400, f"{error}\n"

    def write_mine(self, **models: Any) -> None:
        """The guide's file, with the commits that the chart asks for."""
        mine = yaml.safe_load(MINE)
        if self.size == "kind":
            mine = {"image": mine["image"]}
        elif self.size == "small":
            # "Not for kind and small."
            del mine["storage"]
        (self.folder / "mine.yaml").write_text(yaml.safe_dump({**mine, "models": models}))

    def for_size(self, command: str) -> str:
        command = re.sub(r"values-(small|pubmed)", f"values-{self.size}", command)
        return command.replace("8000:8000", f"{self.port}:8000").replace(
            "127.0.0.1:8000", f"127.0.0.1:{self.port}"
        )

    def run(self, *commands: str) -> subprocess.CompletedProcess:
        """As typed into one shell."""
        script = "\n".join(self.for_size(command) for command in commands)
        return subprocess.run(
            ["sh", "-c", script], cwd=self.folder, env=self.environment, text=True,
            capture_output=True, check=False, timeout=120,
        )  # fmt: skip

    def done(self, *commands: str) -> str:
        """What they say that must succeed."""
        done = self.run(*commands)
        assert done.returncode == 0, f"{commands}: {done.stdout}{done.stderr}"
        return str(done.stdout)

    def refused(self, *commands: str) -> str:
        """What they say that must fail."""
        done = self.run(*commands)
        assert done.returncode != 0, f"{commands}: {done.stdout}"
        return str(done.stdout + done.stderr)

    def name_commits(self, command: str) -> int:
        """Write the commits that the chart asks for, one after the other, until it asks no more."""
        models: dict[str, Any] = {}
        while (done := self.run(command)).returncode:
            missing = re.search(r"models\.(\w+)\.revision: give the commit", done.stderr)
            assert missing, done.stderr
            models[missing[1]] = {"revision": COMMIT}
            self.write_mine(**models)
        return len(models)

    @contextmanager
    def running(self, command: str) -> Iterator[None]:
        """In another shell, until the block ends."""
        process = subprocess.Popen(
            ["sh", "-c", f"exec {self.for_size(command)}"], cwd=self.folder, text=True,
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert process.stdout
        try:
            assert process.stdout.readline().startswith("Forwarding")
            yield
        finally:
            process.kill()
            process.wait()

    def write_commits(self) -> None:
        """Write them at once, as one does who knows which the chart asks for."""
        self.write_mine(**{role: {"revision": COMMIT} for role in self.without_commit()})

    def without_commit(self) -> list[str]:
        models: Object = values_file(self.size).get("models", {})
        return [role for role, model in models.items() if not model["revision"]]


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    """Its URL, while it serves."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def walking(folder: Path, size: str, groups: Sequence[str] = GROUPS, **plan: Any) -> Iterator[Walk]:
    """A walk from an empty cluster; `plan` is what goes wrong in it (`state.PLAN`)."""
    walk: Walk
    stack = ExitStack()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, said = walk.answer(self.path.strip("/"), body.split("\0")[:-1], stack)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(said.encode())

        def log_message(self, *_: object) -> None:
            """Silent: the shell shows what it is told."""

    with stack, serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
        walk = Walk(folder, size, groups, plan, url)
        yield walk
