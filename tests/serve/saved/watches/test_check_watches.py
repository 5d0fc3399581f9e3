from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from sqlalchemy import update

from cluster.answers import Answer, RankedCitation
from cluster.records import RETRACTED_TYPE
from serve.saved.stores import Saved
from serve.saved.tables import WATCHES
from serve.saved.watches.check_watches import Budget, Checked, check_one, check_watches
from serve.saved.watches.keep_checking import PoliteAsk, WatchKeeper
from serve.saved.watches.lease import DatabaseLease
from serve.saved.watches.watch_store import MOST_WAIT_S
from tests.serve.awaited import awaited
from tests.serve.saved.kept import saved_at
from tests.serve.saved.watches.asking import Clock, FakeAsk, check, made_answer
from tests.serve.script_process import start_script
from tests.small_index import citation

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_database")]

FAST = 6000.0


def watch(saved: Saved, *questions: str) -> list[str]:
    return [saved.watches.add("", {"question": question}).id for question in questions]


def asking(version: str, *supporting: int) -> FakeAsk:
    return FakeAsk(lambda body: made_answer(supporting or (1,), body=body, version=version))


def test_retracted_article_at_the_top_of_the_list_is_reported(saved: Saved) -> None:
    (one,) = watch(saved, "A?")
    listed = (RankedCitation.of(citation(7, "", "Paper 7"), 1.0, {}),)
    check(saved, FakeAsk(lambda body: made_answer(citations=listed)), "v000001")
    later = FakeAsk(lambda body: made_answer(citations=listed, version="v000002"))
    later.records[7] = citation(7, "", "Paper 7", publication_types=(RETRACTED_TYPE,))
    assert check(saved, later, "v000002").notable == 1
    diff = saved.watches.checks(one)[0].diff
    assert diff is not None
    assert [(change.pmid, change.kind) for change in diff.sources] == [(7, "retracted")]


def test_question_with_the_oldest_check_comes_first(saved: Saved) -> None:
    watch(saved, "A?", "B?")
    check(saved, asking("v000001"), "v000001")
    watch(saved, "New?")
    order = asking("v000002")
    check(saved, order, "v000002")
    assert order.asked[0] == "New?"
    assert sorted(order.asked) == ["A?", "B?", "New?"]


def test_retracted_source_is_reported_after_the_answer_stopped_citing_it(saved: Saved) -> None:
    (one,) = watch(saved, "A?")
    check(saved, asking("v000001", 1, 2), "v000001")
    later = asking("v000002", 2)
    later.records[1] = None
    check(saved, later, "v000002")
    diff = saved.watches.checks(one)[0].diff
    assert diff is not None
    assert [(change.pmid, change.kind) for change in diff.sources] == [(1, "deleted")]
    # The next version does not report it again.
    again = asking("v000003", 2)
    again.records[1] = None
    assert check(saved, again, "v000003") == Checked(asked=1)


def test_incomplete_answer_or_that_of_another_version_is_not_compared(saved: Saved) -> None:
    (one,) = watch(saved, "A?")
    assert check(saved, asking("v000001"), "v000002").failed == 1
    assert "v000001, not v000002" in saved.watches.get(one).error
    make_due(saved)
    part = FakeAsk(lambda body: made_answer(body=body, version="v000001", coverage="1/2"))
    assert check(saved, part, "v000001") == Checked(asked=1, failed=1)
    assert "1/2" in saved.watches.get(one).error
    # A known exposure would be reported as new at the next check.
    make_due(saved)
    unknown = asking("v000001")
    unknown.exposed = None
    assert check(saved, unknown, "v000001") == Checked(asked=1, failed=1)
    assert "a shard does not answer" in saved.watches.get(one).error
    assert saved.watches.checks(one) == []
    # The question is retried later.
    assert check(saved, asking("v000001"), "v000001") == Checked()
    make_due(saved)
    assert check(saved, asking("v000001"), "v000001") == Checked(asked=1)
    assert saved.watches.get(one).error == ""


def make_due(saved: Saved) -> None:
    with saved.database.write() as connection:
        connection.execute(update(WATCHES).values(not_before=0.0))


def test_failing_question_is_retried_with_back_off(saved: Saved) -> None:
    bad, _ = watch(saved, "Bad?", "Good?")

    def make(body: str) -> object:
        if body == "Bad?":
            raise ZeroDivisionError("secret")
        return made_answer(body=body)

    ask = FakeAsk(make)  # type: ignore[arg-type]
    assert check(saved, ask, "v000001") == Checked(asked=2, failed=1)
    waits: list[float] = []
    for _ in range(9):
        with saved.database.read() as connection:
            row = connection.execute(WATCHES.select().where(WATCHES.c.id == bad)).one()
        waits.append(round(row.not_before - time.time()))
        make_due(saved)
        check(saved, ask, "v000001")
    assert waits == sorted(waits)
    assert 50 < waits[0] < 61 < waits[-1] <= MOST_WAIT_S
    assert saved.watches.get(bad).error == "internal error; see the server's log"


def test_unreadable_stored_answer_restarts_the_history(saved: Saved) -> None:
    (one,) = watch(saved, "A?")
    check(saved, asking("v000001"), "v000001")
    with saved.database.write() as connection:
        connection.execute(update(WATCHES).values(answer={"text": "as it was long ago"}))
    assert check(saved, asking("v000002", 2), "v000002") == Checked(asked=1)
    assert saved.watches.checks(one)[0].diff is None


def test_checks_keep_to_the_rate_limit_and_resume_in_the_next_round(saved: Saved) -> None:
    questions = [f"Q{n}?" for n in range(40)]
    watch(saved, *questions)
    clock, ask = Clock(), asking("v000001")
    at: list[float] = []
    make = ask.make
    ask.make = lambda body: (at.append(clock.now), make(body))[1]
    for most, asked in ((30, 30), (None, 10)):
        budget = Budget(12, most, clock=clock, sleep=clock.sleep)
        done = asyncio.run(check_watches(saved.watches, ask, "v000001", budget))
        assert done == Checked(asked=asked)
    assert sorted(ask.asked) == sorted(questions)
    # At most 12 questions in any minute of a round.
    assert all(later - earlier >= 60 for earlier, later in zip(at[:18], at[12:30], strict=True))
    assert saved.watches.waiting("v000001") == 0


CHECKING = """
import asyncio, os, sys
from pathlib import Path
from serve.saved.watches.check_watches import Budget, check_watches
from tests.serve.saved.kept import saved_at
from tests.serve.saved.watches.asking import FakeAsk, made_answer

folder = Path(sys.argv[1])
log = os.open(folder / "asked", os.O_WRONLY | os.O_APPEND)

def make(body):
    os.write(log, f"{body}\\n".encode())
    return made_answer((1, 2), body=body, version="v000002")

print("at work", flush=True)
work = check_watches(saved_at(folder).watches, FakeAsk(make), "v000002", Budget(6000))
asyncio.run(work)
"""


@pytest.mark.process
def test_killed_process_loses_and_repeats_no_check(tmp_path: Path) -> None:
    saved, chance = saved_at(tmp_path), random.Random(7)
    questions = [f"Q{n}?" for n in range(16)]
    ids = watch(saved, *questions)
    check(saved, asking("v000001"), "v000001")
    kills, log = 0, tmp_path / "asked"
    log.touch()
    for count in (2, 6, None):
        with start_script(CHECKING, tmp_path) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "at work\n"
            if count is None:
                assert process.wait(60) == 0
                break
            while log.read_text().count("\n") < count:
                time.sleep(0.005)
            time.sleep(chance.uniform(0, 0.01))
            process.kill()
            kills += 1
    asked = Counter(log.read_text().split())
    assert set(asked) == set(questions)
    # A kill repeats at most the question that was being asked.
    assert sum(asked.values()) - len(questions) <= kills
    for one in ids:
        versions = [c.version for c in saved.watches.checks(one)]
        assert sorted(versions) == ["v000001", "v000002"]


def test_result_is_discarded_if_the_question_was_checked_or_deleted_meanwhile(saved: Saved) -> None:
    (one,) = watch(saved, "A?")
    check(saved, asking("v000001"), "v000001")
    before = saved.watches.get(one)

    async def both() -> list[bool]:
        asks = (asking("v000002", 2), asking("v000002", 2))
        work = (check_one(saved.watches, ask, "v000002", before) for ask in asks)
        return sorted(await asyncio.gather(*work))

    assert asyncio.run(both()) == [False, True]
    assert len(saved.watches.checks(one)) == 2
    gone = saved.watches.get(one)
    saved.watches.delete(one)
    assert asyncio.run(check_one(saved.watches, asking("v000003"), "v000003", gone)) is False
    assert saved.watches.list() == []


def test_lease_has_one_holder_until_it_expires(saved: Saved) -> None:
    one, other = (DatabaseLease(saved.database, "watches", 0.3) for _ in range(2))
    assert one.acquire()
    assert not other.acquire()
    assert one.acquire()
    one.release()
    assert other.acquire()
    assert not one.acquire()
    time.sleep(0.35)
    assert one.acquire()
    assert DatabaseLease(saved.database, "webhooks").acquire()


@awaited
async def test_only_one_of_two_gateways_checks(saved: Saved) -> None:
    watch(saved, "A?", "B?")
    ask = asking("v000001")
    fast = replace(saved, settings=saved.settings.model_copy(update={"checks_per_minute": FAST}))
    served = AsyncMock(return_value="v000001")
    keepers = [WatchKeeper(fast, ask, served, 1.0) for _ in range(2)]
    await asyncio.gather(*(keeper.check() for keeper in keepers))
    assert sorted(ask.asked) == ["A?", "B?"]


def test_checks_wait_while_users_ask() -> None:
    calls = [True, True, False]
    ask = asking("v000001")
    polite = PoliteAsk(ask, lambda: calls.pop(0) if calls else False)
    asyncio.run(polite.answer({"question": "A?"}))
    assert (calls, ask.asked) == ([], ["A?"])
    # The wait is limited.
    begun = time.monotonic()
    asyncio.run(PoliteAsk(ask, lambda: True, 0.2).answer({"question": "B?"}))
    assert 0.2 <= time.monotonic() - begun < 30


@awaited
async def test_checks_take_at_most_a_tenth_of_the_time() -> None:
    begun: list[float] = []

    def make(body: str) -> Answer:
        begun.append(time.monotonic())
        time.sleep(0.05)
        return made_answer(body=body)

    polite = PoliteAsk(FakeAsk(make), lambda: False)
    for body in ("A?", "B?", "C?"):
        await polite.answer({"question": body})
    assert all(later - earlier >= 0.5 for earlier, later in pairwise(begun))
