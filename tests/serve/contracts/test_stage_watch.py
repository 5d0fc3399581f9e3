import asyncio
import logging
from types import SimpleNamespace

import pytest

from cluster.errors import LLMError
from serve.contracts.stage_watch import StageWatch


async def give(value: str) -> str:
    return value


def run(watch: StageWatch, stage: str, work: object, deadline_s: float = 60) -> object:
    return asyncio.run(watch.run(stage, work, deadline_s, "going on without"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("question_s", "stage_s"), [(60, 0.01), (0.01, 3600), (-1, 3600)])
def test_late_stage_is_cancelled_and_recorded(question_s: float, stage_s: float) -> None:
    cancelled = []

    async def hang() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    watch = StageWatch(question_s)
    assert run(watch, "rerank", hang(), stage_s) is None
    assert watch.degraded == ["rerank: late, going on without"]
    assert cancelled == [True]
    assert "rerank" in watch.timings_ms


def test_cancelled_question_is_not_a_loss() -> None:
    async def ask(watch: StageWatch) -> None:
        stage = asyncio.create_task(watch.run("write", asyncio.sleep(3600), 3600, "x"))
        await asyncio.sleep(0)
        stage.cancel()
        await stage

    watch = StageWatch(60)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(ask(watch))
    assert watch.degraded == []


def test_losses_are_listed_once_in_order() -> None:
    watch = StageWatch(60)
    for loss in ("b lost", "a lost", "b lost"):
        watch.note(loss)
    assert watch.degraded == ["b lost", "a lost"]


def test_overlapping_calls_count_once_in_timings(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(100))
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr("serve.contracts.stage_watch.time", clock)
    watch = StageWatch(1000)  # at second 0

    async def shards() -> None:
        await asyncio.gather(*(watch.run("retrieve", give("hit"), 60, "") for _ in range(3)))

    asyncio.run(shards())  # begun at 1, 2 and 3; over at 4
    assert watch.timings_ms["retrieve"] == 3000
    asyncio.run(shards())  # begun at 5, 6 and 7; over at 8
    assert watch.timings_ms["retrieve"] == 6000


@pytest.mark.parametrize("error", [RuntimeError("no such file"), LLMError("llm: no such file")])
def test_failed_stage_is_recorded_and_logged(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise error

    watch = StageWatch(60)
    with caplog.at_level(logging.WARNING, "citeray"):
        assert run(watch, "expand", fail()) is None
    assert watch.degraded == ["expand: failed, going on without"]
    (record,) = caplog.records
    assert "no such file" in caplog.text
    # Only an unexpected error has a traceback.
    assert (record.exc_info is None) is isinstance(error, LLMError)
