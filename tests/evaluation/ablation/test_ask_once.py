from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evaluation.ablation.ask_once import with_reply_cache
from serve.llm.model_roles import ModelRoles

WORDS = [{"role": "user", "content": "Other words for aspirin?"}]


class Numbering:
    """Chat model whose replies are numbered."""

    def __init__(self) -> None:
        self.calls = 0

    async def chat(self, messages: Any, **options: Any) -> str:
        self.calls += 1
        return f"reply {self.calls}"


def test_identical_prompts_are_asked_once(subtests: pytest.Subtests) -> None:
    for again, calls in [
        ({}, 1),
        ({"max_tokens": 20}, 2),
        ({"temperature": 0.1}, 2),
        ({"choices": ["yes", "no"]}, 2),
        ({"messages": [{"role": "user", "content": "For heparin?"}]}, 2),
    ]:
        with subtests.test(again=again):
            model = Numbering()
            rewriter = with_reply_cache(ModelRoles(None, (model,))).of("rewriter")
            assert rewriter is not None
            asked: dict[str, Any] = {"messages": WORDS, "max_tokens": 10, "temperature": 0.0}
            replies = [asyncio.run(rewriter.chat(**{**asked, **more})) for more in ({}, again)]
            assert model.calls == calls
            assert (replies[0] == replies[1]) == (calls == 1)


def test_seeded_replies_are_cached_per_seed() -> None:
    model = Numbering()
    rewriter = with_reply_cache(ModelRoles(None, (model,))).of("rewriter")
    assert rewriter is not None
    replies = [
        asyncio.run(rewriter.chat(WORDS, max_tokens=10, temperature=0.7, seed=seed))
        for seed in (0, 1, 0, 1)
    ]
    assert replies == ["reply 1", "reply 2", "reply 1", "reply 2"]
