"""Cache of model replies, for systems that differ only in their search."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from serve.llm.chat_form import Message
from serve.llm.language_model import ChatModel
from serve.llm.model_roles import ModelRoles


class CachedChatModel:
    """A ChatModel that caches replies at temperature 0 or with a seed, by prompt.

    Do not use it to compare latencies: a cached reply takes no time.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._replies: dict[str, str] = {}

    async def chat(self, messages: Sequence[Message], *, temperature: float, **options: Any) -> str:
        """Return the cached reply to the prompt, or ask the model as `ChatModel.chat` does."""
        drawn = temperature > 0 and options.get("seed") is None
        if drawn or options.get("say"):
            return await self._model.chat(messages, temperature=temperature, **options)
        asked = json.dumps([messages, temperature, options], sort_keys=True)
        if asked not in self._replies:
            reply = await self._model.chat(messages, temperature=temperature, **options)
            self._replies[asked] = reply
        return self._replies[asked]


def with_reply_cache(models: ModelRoles) -> ModelRoles:
    """Return the same models, each with a cache of its replies."""
    return replace(
        models,
        writer=CachedChatModel(models.writer) if models.writer else None,
        rewriters=tuple(CachedChatModel(model) for model in models.rewriters),
        ranker=CachedChatModel(models.ranker) if models.ranker else None,
    )
