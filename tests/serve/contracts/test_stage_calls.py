import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from cluster.settings.settings import load_settings
from serve.contracts.backend import IndexFacts, LocalBackend
from serve.contracts.stage_calls import REQUEST, StageCalls, stage_method
from serve.contracts.stage_watch import StageWatch

SERVE = load_settings().serve


class Encoder:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, text: str) -> int:
        self.asked.append(text)
        if text == "lost":
            raise RuntimeError("gone")
        return len(text)

    async def aloud(self, text: str) -> AsyncGenerator[str | int, None]:
        for word in text.split():
            yield word
        if text != "cut off":
            yield len(text)


ENCODE = stage_method("encoder", Encoder.encode, "encode", "BM25 only")
ALOUD = stage_method("encoder", Encoder.aloud, "encode", "BM25 only")


def calls() -> tuple[StageCalls, Encoder]:
    encoder = Encoder()
    backend = LocalBackend(IndexFacts(1, 0.9, 0.4), encoder=encoder)
    return StageCalls(backend, SERVE, StageWatch(60), 2000), encoder


def test_lost_call_returns_none_and_is_recorded() -> None:
    stages, _ = calls()
    assert asyncio.run(stages.call(ENCODE, "AMPK")) == 4
    assert stages.watch.degraded == []
    assert asyncio.run(stages.call(ENCODE, "lost")) is None
    assert asyncio.run(stages.call(ENCODE.with_loss("no order"), "lost")) is None
    assert stages.watch.degraded == ["encode: failed, BM25 only", "encode: failed, no order"]


def test_once_shares_equal_calls_even_if_lost() -> None:
    stages, encoder = calls()

    async def scenario() -> list[Any]:
        texts = ("AMPK", "AMPK", "lost", "lost")
        together = await asyncio.gather(*(stages.once(ENCODE, text) for text in texts))
        return [*together, await stages.once(ENCODE.with_loss("x"), "lost")]

    assert asyncio.run(scenario()) == [4, 4, None, None, None]
    assert sorted(encoder.asked) == ["AMPK", "lost"]
    assert stages.watch.degraded == ["encode: failed, BM25 only"]


def test_stream_without_a_reply_is_lost() -> None:
    stages, _ = calls()
    said: list[str] = []
    assert asyncio.run(stages.stream(said.append, ALOUD, "Metformin activates AMPK")) == 24
    assert asyncio.run(stages.stream(said.append, ALOUD, "cut off")) is None
    assert said == ["Metformin", "activates", "AMPK", "cut", "off"]
    assert stages.watch.degraded == ["encode: failed, BM25 only"]


def test_deadline_comes_from_the_limit() -> None:
    assert ENCODE.deadline_s(SERVE) == SERVE.encoder.deadline_s
    whole = stage_method("encoder", Encoder.encode, "encode", limit=REQUEST)
    assert whole.deadline_s(SERVE) == SERVE.request_deadline_s
