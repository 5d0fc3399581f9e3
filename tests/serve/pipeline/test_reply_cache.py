import asyncio
from functools import partial
from typing import Any

import pytest

from cluster.index.read_shard import ShardQuery
from serve.contracts.backend import BackendWrapper
from serve.pipeline.reply_cache import CachingBackend
from tests.serve.service import CORPUS
from tests.serve.small_graph import backend_of


class Counted(BackendWrapper):
    """Backend that records encoded texts; the first `failing` calls raise."""

    asked: list[str]
    failing = 0

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        if method == "encode":
            self.asked.append(*arguments)
            if self.failing:
                self.failing -= 1
                raise RuntimeError("gone")
        return await super().call(stage, method, *arguments)


def counted_backend() -> tuple[Counted, CachingBackend]:
    counted = Counted(backend_of(CORPUS).backend)
    counted.asked = []
    return counted, CachingBackend(counted)


def test_replies_are_cached_unless_the_call_failed() -> None:
    async def scenario() -> None:
        counted, backend = counted_backend()
        encode = partial(backend.call, "encoder", "encode")
        counted.failing = 1
        with pytest.raises(RuntimeError):
            await encode("metformin")
        assert await encode("metformin") is await encode("metformin")
        assert counted.asked == ["metformin", "metformin"]
        await encode("warfarin")
        assert counted.asked == ["metformin", "metformin", "warfarin"]

    asyncio.run(scenario())


def test_cache_key_includes_all_arguments() -> None:
    async def scenario() -> None:
        _, backend = counted_backend()
        encode = partial(backend.call, "encoder", "encode")
        shard = partial(backend.call, "shard-0000")
        vector = (await encode("metformin")).vector
        other = (await encode("warfarin")).vector
        one = await shard("find", ShardQuery(vector, None, 1, 1, "citations"))
        same = await shard("find", ShardQuery(vector.copy(), None, 1, 1, "citations"))
        assert one is same
        for query in (
            ShardQuery(other, None, 1, 1, "citations"),
            ShardQuery(vector, None, 2, 1, "citations"),
        ):
            assert await shard("find", query) is not one
        assert await shard("fetch", [1], None, None) is await shard("fetch", [1], None, None)
        assert await shard("fetch", [1], None, None) is not await shard("fetch", [1], vector, None)

    asyncio.run(scenario())


def test_cancelled_caller_does_not_cancel_the_shared_call() -> None:
    async def scenario() -> None:
        _, backend = counted_backend()
        encode = partial(backend.call, "encoder", "encode")
        late = asyncio.create_task(encode("metformin"))
        other = asyncio.create_task(encode("metformin"))
        await asyncio.sleep(0)
        late.cancel()
        assert (await other).vector.any()

    asyncio.run(scenario())
