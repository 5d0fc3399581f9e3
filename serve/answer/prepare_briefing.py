"""Prepare the input of the prompts: read the evidence, rank its names, and choose examples."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cluster.answers import Evidence, Question
from cluster.errors import InputError
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.ask_model import Briefing, WriterLimits
from serve.answer.examples.few_shot import EncoderLostError, ExampleMemory
from serve.answer.examples.read_examples import FewShotExample
from serve.answer.names.cluster_names import Recognise
from serve.answer.names.group_names import LIMITS, name_concepts
from serve.answer.names.rank_names import RankedName, rank_names
from serve.answer.names.score_names import NameModel, weigh_names
from serve.answer.read_evidence import CachedReader, ReadCitation, read_evidence
from serve.llm.language_model import ChatModel
from serve.llm.prompts import quote

log = logging.getLogger(__name__)

UNCOMPARED = "examples: encoder lost, answered without"
NO_EXAMPLES = "examples: none stored, answered without"
UNREAD = "examples: cannot be read, answered without"
UNWEIGHED = "names: model lost, ranked by the reader alone"
# Maximum number of the evidence's entities in a prompt.
MAX_NAMED = 40
# Maximum number of evidence characters, whose sentences are all compared with the answer's.
MAX_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class BriefingMaker:
    """Makes the briefing of each answer; `memory` is None if no examples are stored.

    `no_weight` is the calibration's.
    """

    model: ChatModel | None
    limits: WriterLimits
    reader: CachedReader
    recognise: Recognise
    namer: NameModel | None
    memory: ExampleMemory | None
    no_weight: float

    async def make(
        self, question: Question, evidence: Sequence[Evidence], style: AnswerSettings
    ) -> tuple[Briefing, list[str]]:
        """Return the briefing, and a note for `degraded` on each part that is missing."""
        read = first_passages(evidence, MAX_CHARACTERS)
        examples, degraded = await self._choose_examples(question, style)
        citations = await asyncio.to_thread(
            read_evidence, question.body, read, self.reader, self.no_weight
        )
        answers = await asyncio.to_thread(self._rank, question, citations, degraded)
        limits = self.limits.for_preset(style)
        briefing = Briefing(self.model, limits, style, question, read, citations, answers, examples)
        if "entities" in briefing.variables:
            briefing = replace(briefing, values={"entities": self._entities(read)})
        if left_out := len(evidence) - len(read):
            degraded.append(f"evidence: the last {left_out} passages not weighed")
        return briefing, degraded

    async def _choose_examples(
        self, question: Question, style: AnswerSettings
    ) -> tuple[Sequence[FewShotExample], list[str]]:
        """Return the examples for the prompt, and a note for `degraded` if there are none."""
        if not style.examples or self.model is None:
            return (), []
        try:
            if self.memory is None:
                raise InputError("llm.examples: not set; name the folder of the examples")
            return await asyncio.to_thread(self.memory.nearest, question, style.examples), []
        except EncoderLostError as error:
            log.warning("examples for %s: %s", question.id or "a question", error)
            return (), [UNCOMPARED]
        except InputError as error:
            log.warning("examples for %s: %s", question.id or "a question", error)
            empty = self.memory is None or self.memory.is_empty
            return (), [NO_EXAMPLES if empty else UNREAD]

    def _rank(
        self, question: Question, citations: Sequence[ReadCitation], degraded: list[str]
    ) -> list[RankedName]:
        """Return the ranked names of an answer; a failure of the namer is added to `degraded`."""
        if question.type not in LIMITS:
            return []
        namer = self.namer if question.type == "factoid" else None
        if namer is not None:
            try:
                return weigh_names(question.body, citations, namer)
            except (RuntimeError, MemoryError) as error:
                log.warning("names for %s: %s", question.id or "a question", error)
                degraded.append(UNWEIGHED)
        return rank_names(question.body, citations, self.recognise)

    def _entities(self, evidence: Sequence[Evidence]) -> str:
        found = [entity for item in evidence for entity in self.recognise(item.passage.text)]
        return quote("; ".join(name_concepts(found)[:MAX_NAMED]))


def first_passages(evidence: Sequence[Evidence], characters: int) -> Sequence[Evidence]:
    """Return the first passages that have at most `characters` together, at least one."""
    total = 0
    for count, item in enumerate(evidence):
        total += len(item.passage.text)
        if total > characters and count:
            return evidence[:count]
    return evidence
