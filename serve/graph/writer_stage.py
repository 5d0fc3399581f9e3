"""The writer stage: writes answers and calls the language models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster.answers import Evidence, Question
from cluster.errors import LLMError
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.write_answer import AnswerWriter, WrittenAnswer
from serve.answer_events import told
from serve.llm.chat_form import Message, Say
from serve.llm.language_model import NO_MODEL
from serve.llm.model_roles import ModelRoles, Role


class WriterStage:
    """Writes answers. All calls to the configured language models go through this stage."""

    def __init__(self, writer: AnswerWriter, models: ModelRoles) -> None:
        self._writer = writer
        self._models = models

    async def write(
        self, question: Question, evidence: Sequence[Evidence], style: AnswerSettings
    ) -> WrittenAnswer:
        """See `AnswerWriter.write`."""
        return await self._writer.write(question, evidence, style)

    async def write_aloud(
        self, question: Question, evidence: Sequence[Evidence], style: AnswerSettings
    ) -> AsyncGenerator[str | WrittenAnswer, None]:
        """Yield the pieces of the model's output, then the answer."""

        async def work(say: Say) -> str | WrittenAnswer:
            return await self._writer.write(question, evidence, style, say)

        async with aclosing(told(work)) as parts:
            async for part in parts:
                yield part

    async def answering(self, question: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Return the reader's score for how well each passage answers, (n,), 0 to 1."""
        return await self._writer.answering(question, passages)

    async def chat(
        self,
        messages: Sequence[Message],
        options: Mapping[str, Any],
        role: Role = "writer",
        turn: int = 0,
    ) -> str:
        """See `ChatModel.chat` and `ModelRoles.of`. Raises LLMError if there is no model."""
        model = self._models.of(role, turn)
        if model is None:
            raise LLMError(NO_MODEL)
        return await model.chat(messages, **options)
