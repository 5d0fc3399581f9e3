import threading

import pytest

from serve.graph.versions.take_turns import Lease, held


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_one_at_a_time_has_the_turn_until_it_is_given_back_or_ends() -> None:
    clock = Clock()
    lease = Lease(30, clock)
    assert lease.take("a")
    assert not lease.take("b")
    lease.give_back("a")
    assert lease.take("dead")
    clock.now += 29
    assert not lease.take("b")
    clock.now += 2
    assert lease.take("b")
    lease.give_back("dead")
    assert not lease.take("c")


def test_asking_again_makes_a_turn_last() -> None:
    clock = Clock()
    lease = Lease(30, clock)
    for _ in range(5):
        assert lease.take("a")
        clock.now += 20
        assert not lease.take("b")


class Counted(Lease):
    """Tells when it was asked a third time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.third = threading.Event()

    def take(self, holder: str) -> bool:
        self.asked += 1
        if self.asked == 3:
            self.third.set()
        return super().take(holder)


def test_a_turn_lasts_as_long_as_the_work_and_no_longer() -> None:
    lease = Counted()
    lease.take("a")
    with held(lease, "a", lease_s=0.01):
        assert lease.third.wait(30)
        assert not lease.take("b")
    assert lease.take("b")


def test_work_that_fails_gives_its_turn_back() -> None:
    lease = Lease()
    lease.take("a")
    with pytest.raises(ValueError, match="broken"), held(lease, "a"):
        raise ValueError("broken")
    assert lease.take("b")
