"""A sample of mutated requests; `python -m tests.hostile.fuzz_requests` sends any number."""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.hostile.fuzz_requests import ACCEPT, BODIES, WHOLE, mutated
from tests.hostile.raw_http import ask, posted


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
def test_mutated_bodies_cause_no_server_error(port: int, subtests: pytest.Subtests) -> None:
    for seed in range(4):
        with subtests.test(seed=seed):
            draw = random.Random(seed)
            bodies = list(BODIES.values())
            for path, body in list(BODIES.items()) * 30:
                request = posted(mutated(draw, body, bodies), path, more=ACCEPT)
                status, reply = ask(port, request)
                assert 200 <= status < 500, (request, reply)


@pytest.mark.slow
def test_mutated_requests_cause_no_server_error_and_leave_no_open_files(
    port: int,
) -> None:
    draw = random.Random(2026)
    before = open_files()
    for number in range(300):
        request = mutated(draw, WHOLE[number % len(WHOLE)], WHOLE)
        status, reply = ask(port, request, patience_s=0.1)
        assert status < 500, (request, reply)
    end = time.monotonic() + 60
    while open_files() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert open_files() <= before
