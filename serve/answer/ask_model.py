"""Prompts to the language model for one answer, and the state that they share."""

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
from serve.synergy.curate_examples import Example
from serve.synergy.few_shot import Stage, as_text, as_turns

EXACT_TYPES = ("yesno", "factoid", "list")

# Reasons why an answer has no text of the language model.
FAILED = "llm: failed"
UNUSABLE = "llm: nothing usable"
ABSENT = "llm: not configured"


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """Limits of one answer: new tokens by stage, characters of evidence, thresholds, deadline.

    If `ideal_from` or `exact_from` is "evidence", that answer is taken from the evidence without
    the model. This is for models too weak to write or choose: SmolLM2-135M says yes to every
    question.
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
        """Return these limits, with the values that the preset sets."""
        names = [limit.name for limit in fields(self)]
        said = {name: v for name in names if (v := getattr(style, name, None)) is not None}
        # One source gives the ideal and the exact answer; otherwise they could disagree.
        return replace(self, **{"exact_from": style.ideal_from or self.exact_from, **said})


def asks_model(settings: Settings, system: SystemSettings, *, answers: bool) -> bool:
    """Return whether the preset calls the language model: to search or, if asked, to answer."""
    limits = WriterLimits(ideal_from=settings.llm.ideal_from, exact_from=settings.llm.exact_from)
    style = system.answer
    return system.asks_model or (answers and limits.for_preset(style).asks_model(style))


@dataclass(frozen=True, slots=True)
class Briefing:
    """Input of the model's prompts for one question. `values` fills variables of the prompts.

    `citations` are the citations of the evidence with their readings, `answers` the names that
    they give for a factoid or list question, best first. `say` is called with each piece of the
    ideal answer as the model generates it, if the answer is plain text.
    """

    model: ChatModel | None
    limits: WriterLimits
    style: AnswerSettings
    question: Question
    evidence: Sequence[Evidence]
    citations: Sequence[ReadCitation]
    answers: Sequence[RankedName] = ()
    examples: Sequence[Example] = ()
    values: Mapping[str, str] | None = None
    say: Say | None = None

    def has_own(self, name: str) -> bool:
        """Return whether the preset has its own prompt `name`, for example a paper's."""
        return self.prompt(name) != find_prompt(name, self.question.type)

    @property
    def is_asked(self) -> bool:
        """Whether the model is used for this answer."""
        exact = self.limits.exact_from if self.question.type in EXACT_TYPES else "evidence"
        wanted = self.style.supported or "model" in (self.limits.ideal_from, exact)
        return self.model is not None and wanted

    @property
    def shown(self) -> list[Evidence]:
        """The passages that fit into the prompts as evidence, in order."""
        return shown_passages(self.evidence, self.limits.evidence_characters, tell=self._tell)

    @property
    def _tell(self) -> Tell | None:
        match self.style.passages:
            case "plain":
                return None
            case "ranked":
                return self._rank
            case "described":
                return describe

    def _rank(self, item: Evidence) -> str:
        """Return PMID and relevance, as paper 001 shows them (section 6.1 and figure 3)."""
        pmid = item.passage.pmid
        read = (c.reading.relevance for c in self.citations if c.pmid == pmid)
        relevance = next(read, None)
        told = "" if relevance is None else f", relevance {relevance:.3f}"
        return f"(PMID {item.passage.pmid}{told}) "

    @property
    def explains(self) -> bool:
        """Whether the model explains a yes or no that is already decided, by CiteRay's own prompts.

        The preset of a paper keeps the paper's order: the ideal answer, then the exact one.
        """
        writes = self.limits.ideal_from == "model"
        return self.question.type == "yesno" and writes and not self.has_own("ideal")

    @property
    def decides_first(self) -> bool:
        """Whether the model decides what it explains; otherwise the reader does."""
        return self.explains and self.limits.exact_from == "model"

    @property
    def variables(self) -> frozenset[str]:
        """Variables in the prompts of the ideal and the exact stage."""
        stages = ("ideal", "exact") if self.question.type in EXACT_TYPES else ("ideal",)
        return frozenset().union(*(self.prompt(name).variables for name in stages))

    def prompt(self, name: str) -> Prompt:
        """Return the preset's prompt `name` for this type of question; raises as `find_prompt`."""
        return find_prompt(name, self.question.type, self.style.prompts)

    async def ask(self, name: str, max_tokens: int, answer: str = "", **constraint: Any) -> str:
        """Return the model's reply to the prompt `name`, with `answer` in place of `$answer`.

        Raises LLMError if there is no model, it fails, or it exceeds the deadline.
        """
        if self.model is None:
            raise LLMError("llm: not configured; set llm.kind to vllm or url")
        if self.limits.repetition_penalty is not None:
            constraint["repetition_penalty"] = self.limits.repetition_penalty
        if (
            name in ("ideal", "explain")
            and self.say is not None
            and "json_schema" not in constraint
        ):
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
        """Return the model's reply as for `ask`, and a summary of the reasoning before it.

        If the preset does not reason, the reply is text under the `constraint`, and the summary is
        "". Otherwise it is a JSON value that should match `schema`.
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
        turns = (
            []
            if "examples" in prompt.variables or name == "supported"
            else (as_turns(self.examples, stage, reasoned=self.style.reasoned))
        )
        wanted = {key: value for key, value in values.items() if key in prompt.variables}
        return prompt.messages(turns, **wanted)
