"""A Ray head with a token refuses nodes and jobs without it."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.command import run
from tests.end_to_end.conftest import RayHead

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

JOIN = "import ray; ray.init(logging_level='ERROR'); print('in', len(ray.nodes()))"


@pytest.mark.parametrize("token", [{}, {"RAY_AUTH_TOKEN": "f" * 64}], ids=["without", "wrong"])
def test_head_refuses_nodes_and_jobs_without_its_token(
    ray_head: RayHead, token: dict[str, str], tmp_path: Path
) -> None:
    headers = {"Authorization": f"Bearer {token.get('RAY_AUTH_TOKEN', '')}"} if token else {}
    job = {"entrypoint": f"touch {tmp_path / 'ran'}"}
    sent = httpx.post(f"{ray_head.dashboard}/api/jobs/", json=job, headers=headers, timeout=30)
    assert sent.status_code in (401, 403)
    for path in ("/api/jobs/", "/api/serve/applications/", "/nodes?view=summary", "/api/v0/actors"):
        seen = httpx.get(f"{ray_head.dashboard}{path}", headers=headers, timeout=30)
        assert seen.status_code in (401, 403), path
    address = {"RAY_ADDRESS": ray_head.driver["RAY_ADDRESS"], "RAY_AUTH_MODE": "token"}
    home = {"HOME": str(tmp_path), "RAY_gcs_rpc_server_reconnect_timeout_s": "5"}
    joined = run([sys.executable, "-c", JOIN], {**address, **token, **home})
    assert joined.returncode != 0
    assert "in 1" not in joined.stdout
    assert not (tmp_path / "ran").exists()
