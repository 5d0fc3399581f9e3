"""Stages that are kept to the Ray nodes of a pool."""

from __future__ import annotations

import json
import sys

import pytest

from tests.end_to_end.command import run

pytestmark = [pytest.mark.ray, pytest.mark.nightly]


def test_a_stage_runs_only_where_its_pool_is() -> None:
    done = run([sys.executable, "-m", "tests.end_to_end.pools"], {"RAY_AUTH_MODE": "disabled"})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"many": ["retrieval"], "one": ["models"]}
