import threading

import pytest

from serve.graph.version_lease import MemoryLease, held


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_lease_has_one_holder_until_released_or_expired() -> None:
    clock = Clock()
    lease = MemoryLease(30, clock)
    assert lease.acquire("a")
    assert not lease.acquire("b")
    lease.release("a")
    assert lease.acquire("dead")
    clock.now += 29
    assert not lease.acquire("b")
    clock.now += 2
    assert lease.acquire("b")
    lease.release("dead")
    assert not lease.acquire("c")


def test_acquiring_again_renews_the_lease() -> None:
    clock = Clock()
    lease = MemoryLease(30, clock)
    for _ in range(5):
        assert lease.acquire("a")
        clock.now += 20
        assert not lease.acquire("b")


class Counted(MemoryLease):
    """Lease that sets `third` at its third `acquire`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.third = threading.Event()

    def acquire(self, holder: str) -> bool:
        self.asked += 1
        if self.asked == 3:
            self.third.set()
        return super().acquire(holder)


def test_held_renews_the_lease_until_the_block_ends() -> None:
    lease = Counted()
    lease.acquire("a")
    with held(lease, "a", lease_s=0.01):
        assert lease.third.wait(30)
        assert not lease.acquire("b")
    assert lease.acquire("b")


def test_held_releases_the_lease_after_an_error() -> None:
    lease = MemoryLease()
    lease.acquire("a")
    with pytest.raises(ValueError, match="broken"), held(lease, "a"):
        raise ValueError("broken")
    assert lease.acquire("b")
