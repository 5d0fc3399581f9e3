"""Language model with scripted replies, in process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cluster.errors import LLMError
from serve.contracts.stage_watch import StageWatch
from serve.contracts.watched_model import WatchedModel
from serve.llm.chat_form import Message

LOST = LLMError("llm: unreachable")
# A text, an error, or a function from the user message to a text.
Reply = str | Exception | Callable[[str], str]


class Script:
    """Language model that gives `replies` in turn and records its `calls`.

    With `repeats`, the last reply is given to all further calls.
    """

    def __init__(self, *replies: Reply, repeats: bool = False) -> None:
        self.replies = list(replies)
        self.repeats = repeats
        self.calls: list[dict[str, Any]] = []

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        self.calls.append({"messages": messages, **options})
        is_last = self.repeats and len(self.replies) == 1
        reply = self.replies[0] if is_last else self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, str) else reply(self.users()[-1])

    def users(self) -> list[str]:
        """Return the user message of each call."""
        return [call["messages"][-1]["content"] for call in self.calls]


def watched(
    model: Script, watch: StageWatch | None = None, evidence_characters: int = 2000
) -> tuple[WatchedModel, StageWatch]:
    """Return (the model as a search uses it, watch that records losses)."""
    watch = watch or StageWatch(30)
    return WatchedModel(model, watch, 30, evidence_characters), watch
