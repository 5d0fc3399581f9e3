"""One answer's talk with the language model: what every question about it shares."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cluster.answers import Evidence, Question
from cluster.errors import LLMError
from cluster.settings.answer_settings import AnswerSettings, WrittenBy
from cluster.settings.settings import Settings
from cluster.settings.system_settings import SystemSettings
from serve.answer.names.rank_names import RankedName
from serve.answer.read_evidence import ReadPassage
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
from serve.synergy.curate_examples import Example
from serve.synergy.few_shot import Stage, as_text, as_turns

EXACT_TYPES = ("yesno", "factoid", "list")

# Why an answer had to do without the model's words.
FAILED = "llm: failed"
UNUSABLE = "llm: nothing usable"
ABSENT = "llm: not configured"


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """What one answer may cost: new tokens by stage, evidence in characters, strictness.

    `ideal_from` and `exact_from` evidence leave an answer to the evidence alone. They are for
    models too weak to write or choose: SmolLM2-135M says yes to every question. Evidence of which
    no passage comes as close to the question as `min_cosine` is about something else, and a passage
    that does not come as close as `deciding_cosine` decides for no yes.
    """

    ideal_tokens: int = 96
    exact_tokens: int = 64
    temperature: float = 0.0
    evidence_characters: int = 3000
    support_threshold: float = 0.5
    deadline_s: float = 30.0
    ideal_from: WrittenBy = "model"
    exact_from: WrittenBy = "model"
    repetition_penalty: float | None = None
    contradiction_threshold: float = 0.5
    min_cosine: float = 0.0
    deciding_cosine: float = 0.0

    def asks_model(self, style: AnswerSettings) -> bool:
        """Whether the language model has a word in the preset's answers."""
        return style.supported or "model" in (self.ideal_from, self.exact_from)

    def for_preset(self, style: AnswerSettings) -> WriterLimits:
        """These, but where the preset says otherwise."""
        said = {
            name: value
            for name in (
                *("ideal_tokens", "exact_tokens", "temperature", "evidence_characters"),
                *("ideal_from", "exact_from", "repetition_penalty"),
            )
            if (value := getattr(style, name)) is not None
        }
        # Whoever writes the ideal answer also gives the exact one, or they would disagree.
        return replace(self, **{"exact_from": style.ideal_from or self.exact_from, **said})


def asks_model(settings: Settings, system: SystemSettings, *, answers: bool) -> bool:
    """Whether the preset asks the language model: in its search, or for its `answers`."""
    limits = WriterLimits(ideal_from=settings.llm.ideal_from, exact_from=settings.llm.exact_from)
    style = system.answer
    return system.asks_model or (answers and limits.for_preset(style).asks_model(style))


@dataclass(frozen=True, slots=True)
class Briefing:
    """What the model is told of one question. `values` fill variables of the prompts.

    `passages` are the first of the evidence as the reader sees them, `answers` the names or
    quantities that they give to a factoid or list question, best first. `say` gets the ideal
    answer's pieces as the model says them, where it is plain text.
    """

    model: ChatModel | None
    limits: WriterLimits
    style: AnswerSettings
    question: Question
    evidence: Sequence[Evidence]
    passages: Sequence[ReadPassage]
    answers: Sequence[RankedName] = ()
    examples: Sequence[Example] = ()
    values: Mapping[str, str] | None = None
    say: Say | None = None

    def has_own(self, name: str) -> bool:
        """Whether the preset has a prompt `name` of its own, such as a paper's."""
        return self.prompt(name) != find_prompt(name, self.question.type)

    @property
    def is_asked(self) -> bool:
        """Whether the model has a word in this answer."""
        exact = self.limits.exact_from if self.question.type in EXACT_TYPES else "evidence"
        wanted = self.style.supported or "model" in (self.limits.ideal_from, exact)
        return self.model is not None and wanted

    @property
    def shown(self) -> list[Evidence]:
        """The passages that prompts hold as their evidence, in order: those that fit."""
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
        """Paper 001 shows snippets with PMIDs (section 6.1) and with their relevance (figure 3)."""
        read = (p.reading.relevance for p in self.passages if p.item.passage == item.passage)
        relevance = next(read, None)
        told = "" if relevance is None else f", relevance {relevance:.3f}"
        return f"(PMID {item.passage.pmid}{told}) "

    @property
    def decides_first(self) -> bool:
        """Whether the model says yes or no before it explains, as our own prompts have it.

        A paper's preset keeps to its paper's order: the ideal answer, then the exact one.
        """
        both = self.limits.ideal_from == self.limits.exact_from == "model"
        return self.question.type == "yesno" and both and not self.has_own("ideal")

    @property
    def variables(self) -> frozenset[str]:
        """What the prompts of the two stages ask for."""
        stages = ("ideal", "exact") if self.question.type in EXACT_TYPES else ("ideal",)
        return frozenset().union(*(self.prompt(name).variables for name in stages))

    def prompt(self, name: str) -> Prompt:
        """The preset's prompt `name` for this type of question; raises what `find_prompt` does."""
        return find_prompt(name, self.question.type, self.style.prompts)

    async def ask(self, name: str, max_tokens: int, answer: str = "", **constraint: Any) -> str:
        """The model's reply to the prompt `name`, of which `answer` fills `$answer`.

        Raises LLMError where there is no model, it fails, or it is too slow.
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
