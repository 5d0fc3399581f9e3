"""The publishing protocol (docs/architecture.md) on a store in memory, in random orders.

No violation is found. Without the compare-and-swap or the lease, the same search finds lost updates
or staged files that were removed during a build.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cluster.index.lease import LEASE_S
from tests.protocol.writers import Part, Store, Writer, checksum, renew

MOST_WRITERS = 4
TURNS = st.sampled_from(["die", "die-on-its-way", "lose-reply"])


class Protocol(RuleBasedStateMachine):
    """Up to MOST_WRITERS concurrent writers, and a reader that checks every step."""

    without: Part | None = None
    sweeps = False
    stops = True

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(self.without)
        self.writers: list[Writer] = []
        self.seen: dict[str, dict[str, list[str]]] = {}
        self.token = 0
        self._stack = ExitStack()
        self._stack.enter_context(self.store.behind_the_lease())

    def teardown(self) -> None:
        for writer in self.writers:
            writer.end()
        self._stack.close()

    @property
    def running(self) -> list[Writer]:
        return [writer for writer in self.writers if not writer.ended]

    def _one(self, data: st.DataObject) -> Writer:
        return data.draw(st.sampled_from(self.running))

    @precondition(lambda self: len(self.running) < MOST_WRITERS)
    @rule()
    def begin(self) -> None:
        name = f"citation-{len(self.writers)}"
        self.writers.append(Writer(self.store, name, sweeps=self.sweeps))

    @precondition(lambda self: self.running)
    @rule(data=st.data(), steps=st.integers(1, 12))
    def go_on(self, data: st.DataObject, steps: int) -> None:
        writer = self._one(data)
        for _ in range(steps):
            if not writer.ended:
                writer.step()
                self.look()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def go_to_the_end(self, data: st.DataObject) -> None:
        writer = self._one(data)
        while not writer.ended:
            writer.step()
            self.look()

    @precondition(lambda self: self.running)
    @rule(data=st.data(), turn=TURNS)
    def fail(self, data: st.DataObject, turn: Any) -> None:
        self._one(data).step(turn)

    @precondition(lambda self: self.store.on_their_way)
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        """Complete a delayed request of a dead writer."""
        place = data.draw(st.integers(0, len(self.store.on_their_way) - 1))
        try:
            self.store.on_their_way.pop(place)()
        except Exception:
            return

    @rule(data=st.data())
    def let_leases_end(self, data: st.DataObject) -> None:
        """Let the leases of dead and stopped writers expire; the others renew theirs."""
        choices = st.lists(st.sampled_from(self.running)) if self.stops and self.running else None
        stopped = [] if choices is None else data.draw(choices)
        if not self.stops and not all(map(renew, self.running)):
            return
        self.store.now += LEASE_S + 1
        for writer in self.running:
            if writer in stopped or not renew(writer):
                writer.was_expired = True

    @invariant()
    def look(self) -> None:
        pointer = self.store.pointer()
        if pointer is None:
            assert not [w for w in self.writers if w.published]
            return
        version, manifest = pointer["version"], self.store.read(f"versions/{pointer['version']}")
        assert manifest is not None, f"{version} is published and has no manifest"
        assert checksum(manifest) == pointer["sha256"], f"{version} is another than was published"
        for writer in self.writers:
            if writer.published:
                assert writer.citation in manifest["citations"], f"{writer.citation} was lost"
        assert self.seen.setdefault(version, manifest) == manifest, f"{version} was used twice"
        assert version == max(self.seen), f"{version} after {max(self.seen)}"
        in_turn = pointer["token"] >= self.token or self.without is not None
        assert in_turn, "an earlier holder wrote last"
        self.token = pointer["token"]
        for citation in manifest["citations"]:
            assert self.store.read(f"segments/{citation}"), f"{citation} has no segment"

    @invariant()
    def nothing_staged_is_lost_under_a_writer_that_was_not_stopped(self) -> None:
        for writer in self.writers:
            lost = writer.outcome == "staging lost" and not writer.was_expired
            assert not lost, f"the staging of {writer.citation} was removed"


class WithoutCompare(Protocol):
    without = "compare"


class Sweeping(Protocol):
    """Variant in which the holder of the lease removes all staged files.

    That is safe only if no holder is ever stopped, because a stopped holder that resumes after its
    lease would remove the files of its successor.
    """

    sweeps, stops = True, False


class WithoutLease(Sweeping):
    without = "lease"


def search(machine: type[Protocol], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("machine", [Protocol, Sweeping])
def test_protocol_holds_in_random_orders(machine: type[Protocol]) -> None:
    search(machine, 40)


@pytest.mark.nightly
def test_protocol_holds_in_many_random_orders() -> None:
    search(Protocol, 3000)


@pytest.mark.nightly
def test_without_the_compare_and_swap_an_update_is_lost() -> None:
    with pytest.raises(AssertionError, match=r"was lost|used twice|another than was published"):
        search(WithoutCompare, 400)


@pytest.mark.slow
def test_without_the_lease_staged_files_are_lost() -> None:
    with pytest.raises(AssertionError, match=r"the staging of .* was removed|is another than was"):
        search(WithoutLease, 400)
