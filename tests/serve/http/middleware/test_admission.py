import asyncio

import pytest

from cluster.errors import RefusedError
from serve.http.middleware.admission import Admission
from tests.serve.awaited import awaited


async def hold(admission: Admission, until: asyncio.Event) -> str:
    async with admission.turn():
        await until.wait()
    return "answered"


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@awaited
async def test_request_is_refused_if_the_queue_is_full() -> None:
    admission, until = Admission(at_once=2, waiting=1, wait_s=60), asyncio.Event()
    held = [asyncio.create_task(hold(admission, until)) for _ in range(3)]
    await settle()
    assert (admission.running, admission.waiting) == (2, 1)
    with pytest.raises(RefusedError, match="2 requests are running and 1 are waiting") as caught:
        await hold(admission, until)
    assert caught.value.status == 429
    assert 1 <= caught.value.retry_after_s <= 60
    until.set()
    assert await asyncio.gather(*held) == ["answered"] * 3
    assert (admission.running, admission.waiting) == (0, 0)


@awaited
async def test_request_is_refused_after_the_longest_wait() -> None:
    admission, until = Admission(at_once=1, waiting=5, wait_s=0.01), asyncio.Event()
    held = asyncio.create_task(hold(admission, until))
    await settle()
    with pytest.raises(RefusedError, match="limit of this server"):
        await hold(admission, until)
    until.set()
    assert await held == "answered"
    assert await hold(admission, until) == "answered"


@awaited
async def test_disconnected_client_releases_its_slot() -> None:
    admission, until = Admission(at_once=1, waiting=1, wait_s=60), asyncio.Event()
    running = asyncio.create_task(hold(admission, until))
    await settle()
    waiting = asyncio.create_task(hold(admission, until))
    await settle()
    waiting.cancel()
    running.cancel()
    await settle()
    assert (admission.running, admission.waiting) == (0, 0)
    until.set()
    assert await hold(admission, until) == "answered"


@awaited
async def test_draining_refuses_new_requests_and_waits_for_running_ones() -> None:
    admission, until = Admission(at_once=1, waiting=5, wait_s=60), asyncio.Event()
    held = [asyncio.create_task(hold(admission, until)) for _ in range(2)]
    await settle()
    drained = asyncio.create_task(admission.drain(60))
    await settle()
    with pytest.raises(RefusedError, match="stopping") as caught:
        await hold(admission, until)
    assert (caught.value.status, caught.value.retry_after_s) == (503, 5)
    assert not drained.done()
    assert await admission.drain(0.01) is False
    until.set()
    assert await drained is True
    assert await asyncio.gather(*held) == ["answered"] * 2
    assert await Admission(1, 1, 1).drain(60) is True
