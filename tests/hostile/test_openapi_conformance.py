"""Replies of the API to valid and invalid requests that schemathesis derives from OpenAPI."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

pytestmark = [pytest.mark.durability, pytest.mark.nightly]

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)
OPTIONS = (
    "--generation-deterministic",
    *("--phases", "examples,coverage,fuzzing", "--max-examples", "10"),
    *("--workers", "1", "--continue-on-failure", "--no-color", "--warnings", "off"),
    # A busy machine is slow, which is no fault of a reply.
    *("--request-timeout", "60", "--suppress-health-check", "too_slow"),
)


def test_replies_match_the_openapi_document(http: httpx.Client, tmp_path: Path) -> None:
    where = f"{http.base_url}/openapi.json"
    command = (sys.executable, "-m", "schemathesis.cli", "run", where)
    run = subprocess.run(
        [*command, "--checks", ",".join(CHECKS), *OPTIONS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert http.get("/healthz").status_code == 200
