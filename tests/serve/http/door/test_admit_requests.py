import asyncio

import pytest

from serve.http.door.admit_requests import Admission, DrainingError, OverloadedError


async def hold(admission: Admission, until: asyncio.Event) -> str:
    async with admission.turn():
        await until.wait()
    return "answered"


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_what_is_over_the_queue_is_sent_away_at_once() -> None:
    async def scenario() -> None:
        admission, until = Admission(at_once=2, waiting=1, wait_s=60), asyncio.Event()
        held = [asyncio.create_task(hold(admission, until)) for _ in range(3)]
        await settle()
        assert (admission.running, admission.waiting) == (2, 1)
        with pytest.raises(OverloadedError, match="2 requests are at work and 1 wait") as caught:
            await hold(admission, until)
        assert 1 <= caught.value.retry_after_s <= 60
        until.set()
        assert await asyncio.gather(*held) == ["answered"] * 3
        assert (admission.running, admission.waiting) == (0, 0)

    asyncio.run(scenario())


def test_who_has_waited_too_long_is_sent_away_and_the_rest_go_on() -> None:
    async def scenario() -> None:
        admission, until = Admission(at_once=1, waiting=5, wait_s=0.01), asyncio.Event()
        held = asyncio.create_task(hold(admission, until))
        await settle()
        with pytest.raises(OverloadedError):
            await hold(admission, until)
        until.set()
        assert await held == "answered"
        assert await hold(admission, until) == "answered"

    asyncio.run(scenario())


def test_a_caller_who_hangs_up_gives_back_the_turn_or_the_place() -> None:
    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_a_draining_gateway_ends_its_work_within_a_deadline_and_takes_no_more() -> None:
    async def scenario() -> None:
        admission, until = Admission(at_once=1, waiting=5, wait_s=60), asyncio.Event()
        held = [asyncio.create_task(hold(admission, until)) for _ in range(2)]
        await settle()
        drained = asyncio.create_task(admission.drain(60))
        await settle()
        with pytest.raises(DrainingError, match="stopping"):
            await hold(admission, until)
        assert not drained.done()
        assert await admission.drain(0.01) is False
        until.set()
        assert await drained is True
        assert await asyncio.gather(*held) == ["answered"] * 2
        assert await Admission(1, 1, 1).drain(60) is True

    asyncio.run(scenario())
