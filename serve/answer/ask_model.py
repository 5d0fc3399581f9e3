"""Call the language model for one answer: its limits, inputs and prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from cluster.answers import Evidence, Question
from cluster.errors import LLMError
from cluster.settings.answer_settings import AnswerSettings, WrittenBy
from cluster.settings.settings import Settings
from cluster.settings.system_settings import SystemSettings
from serve.answer.examples.few_shot import Stage, as_text, as_turns
from serve.answer.examples.read_examples import FewShotExample
from serve.answer.names.rank_names import RankedName
from serve.answer.read_evidence import ReadCitation
from serve.llm.chat_form import Say
from serve.llm.language_model import ChatModel
from serve.llm.prompts import (
    Prompt,
    Tell,
    describe,
    find_prompt,
    number_passages,
    quote,
    shown_passages,
)
from serve.llm.reply_forms import Schema, read_reasoned, reasoned_schema, summarise_reasoning
from serve.support.weigh_evidence import Thresholds

EXACT_TYPES = ("yesno", "factoid", "list")

# Reasons why an answer contains no text by the language model.
FAILED = "llm: failed"
UNUSABLE = "llm: nothing usable"
ABSENT = "llm: not configured"
NO_TIME = "llm: no time in the budget"


def extractive_loss(reason: str) -> str:
    """Return the loss of an answer that was quoted because the model did not write it."""
    return f"{reason}, extractive answer"


# Losses of answers that the language model should have written but did not.
LOST_MODEL = frozenset(map(extractive_loss, (FAILED, UNUSABLE, ABSENT, NO_TIME)))


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """Limits for writing one answer; `deadline_s` limits each model call, in seconds.

    `evidence_characters` limits the passages in a prompt. If `ideal_from` or `exact_from` is
    "evidence", that answer is extracted from the evidence without the model, for models that are
    too weak: SmolLM2-135M says yes to every question.
    """

    ideal_tokens: int = 96
    exact_tokens: int = 64
    temperature: float = 0.0
    evidence_characters: int = 3000
    thresholds: Thresholds = field(default_factory=Thresholds)
    deadline_s: float = 30.0
    ideal_from: WrittenBy = "model"
    exact_from: WrittenBy = "model"
    repetition_penalty: float | None = None

    def asks_model(self, style: AnswerSettings) -> bool:
        """Return whether the preset's answers use the language model."""
        return style.supported or "model" in (self.ideal_from, self.exact_from)

    def for_preset(self, style: AnswerSettings) -> WriterLimits:
        """Return a copy of these limits in which the values of the preset take precedence."""
        names = [limit.name for limit in fields(self)]
        said = {name: v for name in names if (v := getattr(style, name, None)) is not None}
        # By default both answers have the same source, so that they do not disagree.
        return replace(self, **{"exact_from": style.ideal_from or self.exact_from, **said})


def asks_model(settings: Settings, system: SystemSettings, *, answers: bool) -> bool:
    """Return True if the preset calls the language model to search or, with `answers`, to write."""
    limits = WriterLimits(ideal_from=settings.llm.ideal_from, exact_from=settings.llm.exact_from)
    style = system.answer
    return system.asks_model or (answers and limits.for_preset(style).asks_model(style))


@dataclass(frozen=True, slots=True)
class Briefing:
    """Input of the model's prompts for one question; `values` fills further prompt variables.

    `citations` are the articles in the evidence with the reader model's results. `answers` are the
    names that it found for a factoid or list question, best first. `say` is called with each piece
    of the ideal answer as the model generates it, if the answer is plain text.
    """

    model: ChatModel | None
    limits: WriterLimits
    style: AnswerSettings
    question: Question
    evidence: Sequence[Evidence]
    citations: Sequence[ReadCitation]
    answers: Sequence[RankedName] = ()
    examples: Sequence[FewShotExample] = ()
    values: Mapping[str, str] | None = None
    say: Say | None = None

    def has_own(self, name: str) -> bool:
        """Return whether the preset has its own version of the prompt `name`."""
        return self.prompt(name) != find_prompt(name, self.question.type)

    @property
    def is_asked(self) -> bool:
        """Whether the language model is called for this answer."""
        exact = self.limits.exact_from if self.question.type in EXACT_TYPES else "evidence"
        wanted = self.style.supported or "model" in (self.limits.ideal_from, exact)
        return self.model is not None and wanted

    @property
    def shown(self) -> list[Evidence]:
        """The passages that fit into the prompts as evidence, in order."""
        return shown_passages(self.evidence, self.limits.evidence_characters, tell=self._tell)

    @property
    def _tell(self) -> Tell | None:
        tells: dict[str, Tell | None] = {"ranked": self._rank, "described": describe}
        return tells.get(self.style.passages)

    def _rank(self, item: Evidence) -> str:
        """Return a prefix with PMID and relevance, as in paper 001 (section 6.1, figure 3)."""
        pmid = item.passage.pmid
        relevance = {c.pmid: f", relevance {c.reading.relevance:.3f}" for c in self.citations}
        return f"(PMID {pmid}{relevance.get(pmid, '')}) "

    @property
    def explains(self) -> bool:
        """Whether the ideal answer explains a yes or no that was decided first (CiteRay's prompts).

        The preset of a paper keeps the paper's order: the ideal answer, then the exact one.
        """
        writes = self.limits.ideal_from == "model"
        return self.question.type == "yesno" and writes and not self.has_own("ideal")

    @property
    def decides_first(self) -> bool:
        """Whether the language model, not the reader model, decides the yes or no to explain."""
        return self.explains and self.limits.exact_from == "model"

    @property
    def reads_names(self) -> bool:
        """Whether the reader model, not the language model, finds the names asked for."""
        return self.question.type in ("factoid", "list") and self.limits.exact_from == "evidence"

    @property
    def variables(self) -> frozenset[str]:
        """Variables in the prompts of the ideal and the exact stage."""
        stages = ("ideal", "exact") if self.question.type in EXACT_TYPES else ("ideal",)
        return frozenset().union(*(self.prompt(name).variables for name in stages))

    def prompt(self, name: str) -> Prompt:
        """Return the preset's prompt `name` for the question's type; InputError if missing."""
        return find_prompt(name, self.question.type, self.style.prompts)

    async def ask(self, name: str, max_tokens: int, answer: str = "", **constraint: Any) -> str:
        """Return the model's reply to the prompt `name`, with `answer` in place of `$answer`.

        Raises LLMError if there is no model, it fails, or it exceeds the deadline.
        """
        if self.model is None:
            raise LLMError("llm: not configured; set llm.kind to vllm or url")
        if self.limits.repetition_penalty is not None:
            constraint["repetition_penalty"] = self.limits.repetition_penalty
        is_text = name in ("ideal", "explain") and "json_schema" not in constraint
        if is_text and self.say is not None:
            constraint["say"] = self.say
        call = self.model.chat(
            self._messages(name, answer),
            max_tokens=max_tokens,
            temperature=self.limits.temperature,
            **constraint,
        )
        try:
            return await asyncio.wait_for(call, self.limits.deadline_s)
        except TimeoutError:
            raise LLMError(f"llm: no answer in {self.limits.deadline_s:g} s") from None

    async def ask_reasoned(
        self, name: str, max_tokens: int, schema: Schema, answer: str = "", **constraint: Any
    ) -> tuple[Any, str]:
        """Return the model's reply as `ask` does, and a summary of the reasoning that precedes it.

        If the preset asks for reasoning, the reply is a JSON value that should match `schema`.
        Otherwise the reply is text that obeys the `constraint`, and the summary is "".
        """
        if not self.style.reasoned:
            return await self.ask(name, max_tokens, answer, **constraint), ""
        form = reasoned_schema(schema, max_tokens)
        reply = read_reasoned(await self.ask(name, max_tokens, answer, json_schema=form))
        return reply.answer, summarise_reasoning(quote(reply.reasoning))

    def _messages(self, name: str, answer: str) -> list[Any]:
        prompt = self.prompt(name)
        stage: Stage = "exact" if name in ("exact", "decide") else "ideal"
        values = {
            "question": quote(self.question.body),
            "evidence": number_passages(
                self.evidence, self.limits.evidence_characters, tell=self._tell
            ),
            "answer": quote(answer),
            "examples": as_text(self.examples, stage),
            **(self.values or {}),
        }
        has_turns = "examples" not in prompt.variables and name != "supported"
        examples = self.examples if has_turns else ()
        turns = as_turns(examples, stage, reasoned=self.style.reasoned)
        wanted = {key: value for key, value in values.items() if key in prompt.variables}
        return prompt.messages(turns, **wanted)
