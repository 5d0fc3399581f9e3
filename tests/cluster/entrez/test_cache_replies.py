from __future__ import annotations

from pathlib import Path

from cluster.entrez.cache_replies import DAY_S, ReplyCache

NOW = 1_000_000.0
SEARCH = {"term": "egfr", "retmax": "5"}


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def make(folder: Path, clock: Clock, days: float = 7, max_bytes: int = 1000) -> ReplyCache:
    return ReplyCache(folder, days, max_bytes, clock)


def test_cached_reply_is_returned_only_for_the_same_request(tmp_path: Path) -> None:
    assert make(tmp_path, Clock()).write("esearch", SEARCH, b"\x00{}") == ""
    cache = make(tmp_path, Clock())
    assert cache.read("esearch", dict(reversed(SEARCH.items()))) == b"\x00{}"
    assert cache.read("esearch", {**SEARCH, "retmax": "6"}) is None
    assert cache.read("efetch", SEARCH) is None


def test_expired_reply_is_not_returned_and_is_deleted_by_the_next_write(tmp_path: Path) -> None:
    clock = Clock()
    cache = make(tmp_path, clock)
    cache.write("esearch", SEARCH, b"{}")
    clock.now = NOW + 7 * DAY_S - 1
    assert cache.read("esearch", SEARCH) == b"{}"
    clock.now = NOW + 7 * DAY_S
    assert cache.read("esearch", SEARCH) is None
    cache.write("efetch", {"id": "2"}, b"x")
    assert len(list(tmp_path.iterdir())) == 1


def test_oldest_replies_are_evicted_when_the_cache_is_full(tmp_path: Path) -> None:
    clock = Clock()
    cache = make(tmp_path, clock)
    for n in range(3):
        clock.now = NOW + n
        cache.write("efetch", {"id": str(n)}, b"x" * 400)
    kept = [cache.read("efetch", {"id": str(n)}) is not None for n in range(3)]
    assert kept == [False, True, True]


def test_oversized_replies_and_zero_days_are_not_cached(tmp_path: Path) -> None:
    assert make(tmp_path, Clock()).write("efetch", {"id": "1"}, b"x" * 1001) == ""
    make(tmp_path, Clock(), days=0).write("esearch", SEARCH, b"{}")
    assert list(tmp_path.iterdir()) == []
