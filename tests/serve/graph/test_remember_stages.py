import asyncio
from pathlib import Path
from typing import Any

import pytest

from cluster.index.read_shard import ShardQuery
from serve.graph.remember_stages import Remembering
from serve.graph.stages import Around, Stages
from tests.serve.service import CORPUS
from tests.serve.small_graph import stages_of


class Counted(Around):
    """Notes each text that is encoded, and fails where `failing` says."""

    asked: list[str]
    failing = 0

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        if method == "encode":
            self.asked.append(*arguments)
            if self.failing:
                self.failing -= 1
                raise RuntimeError("gone")
        return await super().call(stage, method, *arguments)


def counted_stages(index: Path) -> tuple[Counted, Stages]:
    plain = stages_of(index, CORPUS)
    counted = Counted(plain.backend)
    counted.asked = []
    return counted, Stages(Remembering(counted), plain.facts)


def test_what_was_asked_once_is_not_asked_again_unless_it_failed(tmp_path: Path) -> None:
    async def scenario() -> None:
        counted, stages = counted_stages(tmp_path)
        counted.failing = 1
        with pytest.raises(RuntimeError):
            await stages.encode("metformin")
        assert await stages.encode("metformin") is await stages.encode("metformin")
        assert counted.asked == ["metformin", "metformin"]
        await stages.encode("warfarin")
        assert counted.asked == ["metformin", "metformin", "warfarin"]

    asyncio.run(scenario())


def test_searches_are_told_apart_by_all_that_they_ask(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, stages = counted_stages(tmp_path)
        shard = stages.shards[0]
        vector = (await stages.encode("metformin")).vector
        other = (await stages.encode("warfarin")).vector
        one = await shard.find(ShardQuery(vector, None, 1, 1, "citations"))
        same = await shard.find(ShardQuery(vector.copy(), None, 1, 1, "citations"))
        assert one is same
        for query in (
            ShardQuery(other, None, 1, 1, "citations"),
            ShardQuery(vector, None, 2, 1, "citations"),
        ):
            assert await shard.find(query) is not one
        assert await shard.fetch([1], None) is await shard.fetch([1], None)
        assert await shard.fetch([1], None) is not await shard.fetch([1], vector)

    asyncio.run(scenario())


def test_a_caller_that_is_late_takes_the_reply_from_nobody_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, stages = counted_stages(tmp_path)
        late = asyncio.create_task(stages.encode("metformin"))
        other = asyncio.create_task(stages.encode("metformin"))
        await asyncio.sleep(0)
        late.cancel()
        assert (await other).vector.any()

    asyncio.run(scenario())
