"""Run the answer writer with scripted replies of the language model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster.answers import Evidence, Question, QuestionType
from cluster.records import Entity
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.ask_model import WriterLimits
from serve.answer.names.cluster_names import Recognise
from serve.answer.names.score_names import NameModel
from serve.answer.write_answer import DEFAULT_STYLE, AnswerWriter, WrittenAnswer
from serve.llm.chat_form import Message
from serve.support.attribute_sentences import Encode, SupportScorer
from tests.serve.answering import CALIBRATION, WordReader, encode, evidence
from tests.serve.scripted_model import Script

TEXT = "Metformin lowers blood glucose by 30% in adults."
BODY = "Does metformin lower blood glucose?"


class Sleeper(Script):
    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        self.calls.append({})
        await asyncio.sleep(60)
        return "late"


def recognise(text: str) -> list[Entity]:
    begin = text.find("Metformin")
    return [Entity("Metformin", begin, begin + 9, "D1", "drug")] if begin >= 0 else []


def write(
    model: Script | None,
    kind: QuestionType = "summary",
    items: Sequence[Evidence] | None = None,
    body: str = "Which drug lowers glucose?",
    *,
    guess: bool = False,
    encoder: Encode = encode,
    scorer: SupportScorer | None = None,
    style: AnswerSettings = DEFAULT_STYLE,
    recognise: Recognise = recognise,
    examples: Path | None = None,
    namer: NameModel | None = None,
    **limits: Any,
) -> WrittenAnswer:
    limits = {"deadline_s": 0.2 if isinstance(model, Sleeper) else 60, **limits}
    writer = AnswerWriter(
        model, encoder, scorer, recognise, WordReader(), CALIBRATION, WriterLimits(**limits),
        examples, namer=namer,
    )  # fmt: skip
    found = evidence(TEXT) if items is None else items
    return asyncio.run(writer.write(Question("q", body, kind, guess=guess), found, style))


def names(*found: str) -> str:
    return json.dumps({"answers": list(found)})


def kept(answer: WrittenAnswer) -> list[tuple[str, tuple[int, ...]]]:
    return [(sentence.text, sentence.pmids) for sentence in answer.ideal]
