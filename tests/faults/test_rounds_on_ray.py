"""How rounds on real processes are drawn and judged, without any."""

from __future__ import annotations

import pytest

from tests.faults.on_ray.callers import ASKED, Allowed, Reply, difference, faults_of
from tests.faults.on_ray.draw_rounds import (
    FIRST,
    KINDS,
    LONG_JOB_S,
    RayRound,
    Strike,
    draw_round,
    draw_rounds,
    smaller_rounds,
)
from tests.faults.on_ray.short_lease import LEASE_S
from tests.faults.steps import least

pytestmark = pytest.mark.ray

WHOLE = {"degraded": [], "coverage": "2/2", "citations": [{"pmid": 1, "score": 0.5}]}
PARTIAL = {**WHOLE, "degraded": ["retrieve: late, shard 1 left out"], "coverage": "1/2"}
DIFFERENT = {**WHOLE, "citations": []}


def test_every_fault_of_every_victim_has_its_turn() -> None:
    turns = len(KINDS) * max(map(len, FIRST.values()))
    drawn = [draw_round(seed) for seed in range(turns)]
    begins = {(r.about, r.strikes[0].victim, r.strikes[0].fault) for r in drawn}
    every = {begin for kind in KINDS for begin in FIRST[kind]}
    # Jobs are struck in the order of time, so that a second strike may come first.
    assert {b for b in every if b[0] == "serving"} <= begins
    found = {(r.about, s.victim, s.fault) for r in drawn for s in r.strikes}
    assert every <= found


def test_a_seed_gives_the_same_round_on_ray_again() -> None:
    assert draw_round(7) == draw_round(7)
    assert draw_round(7) != draw_round(7 + 2)


def test_a_kind_alone_has_the_rounds_that_it_has_among_all() -> None:
    both = draw_rounds(0, 8)
    assert draw_rounds(0, 4, ["serving"]) == [r for r in both if r.about == "serving"]
    assert draw_rounds(0, 4, ["index"]) == [r for r in both if r.about != "serving"]


def test_a_long_stop_of_a_job_outlasts_its_lease() -> None:
    assert LONG_JOB_S[0] > LEASE_S + 1


def test_a_failing_round_is_shrunk_to_the_strike_and_the_seconds_that_it_needs() -> None:
    strikes = (Strike("gateway", "kill", 1.0, 0.0), Strike("encoder", "stop", 1.0, 8.0))

    def fails(less: RayRound) -> bool:
        return any(s.victim == "encoder" and s.pause_s > 1.5 for s in less.strikes)

    found = least(RayRound(1, "serving", strikes), smaller_rounds, fails)
    assert found.strikes == (Strike("encoder", "stop", 1.0, 2.0),)


def test_a_reply_is_whole_or_says_what_it_lacks_or_when_to_ask_again(
    subtests: pytest.Subtests,
) -> None:
    for reply, fault in [
        ({"status": 200, "body": WHOLE}, ""),
        ({"status": 200, "body": PARTIAL}, ""),
        ({"status": 503, "again_after": "1"}, ""),
        ({"status": 429, "again_after": "2"}, ""),
        ({"status": 200, "body": DIFFERENT}, "says nothing of what differs"),
        ({"status": 503}, "503"),
        ({"status": 500, "again_after": "1", "body": "oops"}, "oops"),
        ({"lost": "ReadError()"}, "lost connection: ReadError()"),
        ({"status": 200, "body": WHOLE, "seconds": 61.0}, "whole after 61 s"),
    ]:
        with subtests.test(reply=reply, fault=fault):
            given = Reply(**{"asked": ASKED[0], "begun": 5.0, "seconds": 0.5, **reply})
            found = faults_of([given], Allowed(4.0, 9.0), {ASKED[0]: WHOLE})
            assert [fault in told for told in found] == [True] * bool(fault)


def test_a_lost_proxy_excuses_connections_and_a_stopped_one_its_time() -> None:
    excused = Allowed(4.0, 9.0, held_up_s=10.0, may_lose=True)
    lost = Reply(ASKED[0], 5.0, 0.5, lost="ReadError()")
    late = Reply(ASKED[0], 5.0, 65.0, 200, body=WHOLE)
    later = Reply(ASKED[0], 9.5, 65.0, 200, body=WHOLE)
    after = Reply(ASKED[0], 9.5, 0.5, lost="ReadError()")
    assert faults_of([lost, late], excused, {ASKED[0]: WHOLE}) == []
    assert len(faults_of([later, after], excused, {ASKED[0]: WHOLE})) == 2


def test_last_bits_are_no_difference() -> None:
    assert difference({"a": [0.5]}, {"a": [0.5004]}) == ""
    assert "reply.a[0]" in difference({"a": [0.6]}, {"a": [0.5]})
    assert "timings_ms" not in difference({"timings_ms": 1, "b": 1}, {"timings_ms": 2, "b": 2})
