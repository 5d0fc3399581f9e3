import asyncio
from pathlib import Path

import numpy as np
import pytest

from cluster.index.read_shard import ShardQuery
from serve.graph.remember_stages import RememberedStages
from tests.serve.service import CORPUS
from tests.serve.small_graph import stages_of


class Counted:
    """Stages that count how often each is asked, and fail where `failing` says."""

    def __init__(self, index: Path) -> None:
        self._stages = stages_of(index, CORPUS)
        self.shards = self._stages.shards
        self.asked: list[str] = []
        self.failing = 0

    async def encode(self, text: str) -> np.ndarray:
        self.asked.append(text)
        if self.failing:
            self.failing -= 1
            raise RuntimeError("gone")
        return await self._stages.encode(text)

    async def rerank(self, question: str, texts: list[str]) -> np.ndarray:
        return await self._stages.rerank(question, texts)


def test_what_was_asked_once_is_not_asked_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        counted = Counted(tmp_path)
        stages = RememberedStages(counted)  # type: ignore[arg-type]
        first, second = await stages.encode("metformin"), await stages.encode("metformin")
        assert counted.asked == ["metformin"]
        assert (first == second).all()
        await stages.encode("warfarin")
        assert counted.asked == ["metformin", "warfarin"]
        scores = await stages.rerank("metformin", ["metformin", "warfarin"])
        assert scores.shape == (2,)

    asyncio.run(scenario())


def test_searches_are_told_apart_by_all_that_they_ask(tmp_path: Path) -> None:
    async def scenario() -> None:
        counted = Counted(tmp_path)
        shard = RememberedStages(counted).shards[0]  # type: ignore[arg-type]
        vector = await counted.encode("metformin")
        other = await counted.encode("warfarin")
        one = await shard.search(ShardQuery(vector, None, 1, 1, "citations"))
        same = await shard.search(ShardQuery(vector.copy(), None, 1, 1, "citations"))
        assert one is same
        for query in (
            ShardQuery(other, None, 1, 1, "citations"),
            ShardQuery(vector, None, 2, 1, "citations"),
        ):
            assert await shard.search(query) is not one
        assert await shard.fetch([1], None) is await shard.fetch([1], None)
        assert await shard.fetch([1], None) is not await shard.fetch([1], vector)

    asyncio.run(scenario())


def test_what_failed_is_asked_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        counted = Counted(tmp_path)
        counted.failing = 1
        stages = RememberedStages(counted)  # type: ignore[arg-type]
        with pytest.raises(RuntimeError):
            await stages.encode("metformin")
        assert (await stages.encode("metformin")).any()
        assert len(counted.asked) == 2

    asyncio.run(scenario())
