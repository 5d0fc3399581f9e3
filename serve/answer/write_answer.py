"""From ranked evidence to a cited answer, in two stages (paper 000, section 3.3).

The ideal answer is written from the evidence, each of its sentences attributed or
dropped; the exact answer follows under constrained decoding, with the ideal one passed
on. Where the model fails, the evidence itself answers, and the answer says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cluster.answers import (
    NOT_ENOUGH,
    Evidence,
    ExactAnswer,
    Question,
    Sentence,
    Verdict,
)
from cluster.errors import InputError
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.ask_model import EXACT_TYPES, FAILED, Briefing, WriterLimits
from serve.answer.decide_verdict import Decision as Decided
from serve.answer.decide_verdict import decide_verdict
from serve.answer.extract_answer import Extract, extract_ideal, is_stated
from serve.answer.extract_exact import extract_exact, rank_answers
from serve.answer.names.group_names import Recogniser, name_concepts
from serve.answer.read_evidence import (
    PassageReader,
    RememberingReader,
    answering,
    first_passages,
    read_evidence,
)
from serve.answer.show_sides import against_model, note_sides, side_of, with_room
from serve.answer.write_exact import Exact, write_exact
from serve.answer.write_ideal import Draft, counted, write_ideal, write_supported
from serve.llm.chat_form import Say
from serve.llm.language_model import ChatModel, CountedModel
from serve.llm.prompts import quote
from serve.llm.reply_forms import Decision
from serve.question.asked_concepts import read_asked
from serve.support.attribute_sentences import (
    Encoder,
    RememberingScorer,
    SecondScorer,
    SimilaritySupport,
    Stance,
    SupportScorer,
    WordingSupport,
    remember,
)
from serve.synergy.curate_examples import Example
from serve.synergy.few_shot import EncoderLostError, ExampleMemory

log = logging.getLogger(__name__)

UNCHECKED = "support: model lost, sentences checked by likeness"
BY_WORDING = "support: encoder lost, sentences checked by wording"
UNCOMPARED = "examples: encoder lost, answered without"
NO_EXAMPLES = "examples: none stored, answered without"
UNREAD = "examples: cannot be read, answered without"
# Of the evidence's entities a prompt names no more than this.
MAX_NAMED = 40
# Each sentence of the evidence is compared with each of the answer; a search finds far less.
WEIGHED_CHARACTERS = 100_000
DEFAULT_STYLE = AnswerSettings()


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """What the writer adds to an Answer.

    `dropped` holds the model's sentences that nothing supported, `stances` what each passage
    does to the answer, by the passage's id. `ideal` and `exact` are the best guess whatever the
    `verdict`; see Answer for it, `confidence` and `stance_on`. `decision` is the model's own,
    None where it was not asked; `share`, 0.5 to 1, is how sure it was of a yes or no, where it
    told. `shown` are the ids of the passages that its prompts held; None where it was not asked.
    `model_calls` is how often it was.
    """

    ideal: tuple[Sentence, ...]
    exact: ExactAnswer
    origin: Literal["generated", "extractive", "none"]
    degraded: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    supported: tuple[Sentence, ...] = ()
    stances: Mapping[str, Stance] = field(default_factory=dict)
    verdict: Verdict = NOT_ENOUGH
    confidence: float = 0.0
    stance_on: str = ""
    caveats: tuple[str, ...] = ()
    decision: Decision | None = None
    share: float | None = None
    shown: tuple[str, ...] | None = None
    model_calls: int = 0


class AnswerWriter:
    """Writes answers. `scorer` defaults to similarity with lexical checks over `encode`.

    `reader` decides from the evidence what no model decides. `examples` is the folder of the
    few-shot memory, if there is one.
    """

    def __init__(
        self,
        model: ChatModel | None,
        encode: Encoder,
        scorer: SupportScorer | None,
        recognise: Recogniser,
        reader: PassageReader,
        limits: WriterLimits | None = None,
        examples: Path | None = None,
    ) -> None:
        self._model = model
        self._encode = encode
        self._scorer = scorer
        self._recognise = recognise
        self._reader = RememberingReader(reader)
        self._limits = limits or WriterLimits()
        self._memory = ExampleMemory(examples, encode) if examples else None

    async def write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings = DEFAULT_STYLE,
        say: Say | None = None,
    ) -> WrittenAnswer:
        """The answer from `evidence` in its order, as the preset's `style` has it written.

        The question's type is known by now (`serve.question.guess_type.typed`).

        `say` gets the pieces of the model's ideal answer, which nothing has checked yet.

        Never raises LLMError: what the model could not do is in `degraded`.
        """
        if not evidence:
            exact = extract_exact(question, (), ())
            return WrittenAnswer((), exact, "none", degraded=("evidence: none found",))
        return await self._write(question, evidence, style, say)

    async def answering(self, question: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """How far each of the passages answers the question, 0 to 1, of shape (n,)."""
        readings = await asyncio.to_thread(self._reader.read, question, passages)
        return np.asarray([answering(reading) for reading in readings], np.float32)

    async def _write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings,
        say: Say | None,
    ) -> WrittenAnswer:
        likeness = SecondScorer(SimilaritySupport(remember(self._encode)), WordingSupport())
        chosen = SecondScorer(self._scorer, likeness)
        scorer = RememberingScorer(chosen)
        weighed = first_passages(evidence, WEIGHED_CHARACTERS)
        briefing, degraded = await self._brief(question, weighed, style)
        left_out = len(evidence) - len(weighed)
        degraded += [f"evidence: the last {left_out} passages not weighed"] if left_out else []
        asked = CountedModel(self._model) if self._model is not None else None
        briefing = replace(briefing, say=say, model=asked)
        draft, extract = await self._draft(briefing, scorer, degraded)
        exact, supported = await self._after(briefing, draft, scorer, degraded)
        decision = exact.decision or draft.decision
        ideal, stances = await asyncio.to_thread(
            note_sides, briefing, draft.sentences, scorer, exact.answer
        )
        degraded += [UNCHECKED] if chosen.lost else []
        degraded += [BY_WORDING] if likeness.lost else []
        against = None
        if extract.side is None:
            against = await asyncio.to_thread(against_model, briefing, exact.answer, self._reader)
        decided = await self._decide(briefing, extract, ideal, exact.answer, decision, against)
        if decided.verdict == "mixed" and against and not style.weigh:
            ideal = with_room(briefing, ideal, against)
        return WrittenAnswer(
            ideal=ideal,
            exact=exact.answer,
            origin=extract.origin if ideal else "none",
            degraded=tuple(degraded),
            dropped=draft.dropped,
            supported=supported,
            stances=stances,
            verdict=decided.verdict,
            confidence=decided.confidence,
            stance_on=decided.stance_on,
            caveats=(decided.warning,) if decided.warning else (),
            decision=decision,
            share=draft.share,
            shown=shown_of(briefing, draft),
            model_calls=asked.calls if asked else 0,
        )

    async def _draft(
        self, briefing: Briefing, scorer: SupportScorer, degraded: list[str]
    ) -> tuple[Draft, Extract]:
        """What is written and where it is from; what it had to do without joins `degraded`."""
        by_choice = briefing.limits.ideal_from == "evidence"
        draft = Draft() if by_choice else await write_ideal(briefing, scorer, self._recognise)
        if draft.stated and not by_choice:
            return draft, Extract(draft.sentences, origin="generated")
        extract = await asyncio.to_thread(self._extract, briefing)
        degraded += [f"{draft.fault}, extractive answer"] if draft.fault else []
        return replace(draft, sentences=extract.sentences), extract

    def _extract(self, briefing: Briefing) -> Extract:
        question, passages = briefing.question, briefing.passages
        asked = read_asked(question.body, self._recognise(question.body))
        return extract_ideal(question, passages, self._reader, briefing.answers, asked=asked)

    async def _decide(
        self,
        briefing: Briefing,
        extract: Extract,
        ideal: Sequence[Sentence],
        exact: ExactAnswer,
        decision: Decision | None,
        against: Sentence | None,
    ) -> Decided:
        question, passages = briefing.question, briefing.passages
        agrees = extract.agrees_with(exact)
        if extract.side is None and (side := side_of(exact)):
            agrees = await asyncio.to_thread(is_stated, question, passages, side, self._reader)
        return decide_verdict(
            question,
            passages,
            counted(ideal, briefing.style.check),
            exact,
            decision,
            generated=extract.origin == "generated",
            agrees=agrees,
            opposed_by=against,
            min_cosine=briefing.limits.min_cosine,
            deciding_cosine=briefing.limits.deciding_cosine,
        )

    async def _brief(
        self, question: Question, evidence: Sequence[Evidence], style: AnswerSettings
    ) -> tuple[Briefing, list[str]]:
        """What the model is told, and what of it is missing."""
        examples: list[Example] = []
        degraded = []
        if style.examples and self._model is not None:
            try:
                if self._memory is None:
                    raise InputError("llm.examples: not set; name the folder of the memory")
                examples = await asyncio.to_thread(self._memory.nearest, question, style.examples)
            except EncoderLostError as error:
                log.warning("examples for %s: %s", question.id, error)
                degraded.append(UNCOMPARED)
            except InputError as error:
                log.warning("examples for %s: %s", question.id, error)
                empty = self._memory is None or self._memory.is_empty
                degraded.append(NO_EXAMPLES if empty else UNREAD)
        limits = self._limits.for_preset(style)
        read = partial(read_evidence, sides=question.type == "yesno")
        passages = await asyncio.to_thread(read, question.body, evidence, self._reader)
        answers = await asyncio.to_thread(rank_answers, question, passages, self._recognise)
        briefing = Briefing(
            self._model, limits, style, question, evidence, passages, answers, examples
        )
        if "entities" in briefing.variables:
            briefing = replace(briefing, values={"entities": self._named(evidence)})
        return briefing, degraded

    def _named(self, evidence: Sequence[Evidence]) -> str:
        found = [entity for item in evidence for entity in self._recognise(item.passage.text)]
        return quote("; ".join(name_concepts(found)[:MAX_NAMED]))

    async def _after(
        self, briefing: Briefing, draft: Draft, scorer: SupportScorer, degraded: list[str]
    ) -> tuple[Exact, tuple[Sentence, ...]]:
        """The exact and the supported answer; what they had to do without joins `degraded`."""
        exact, fault = Exact(), draft.fault
        if briefing.question.type in EXACT_TYPES:
            exact = await write_exact(briefing, draft, self._recognise)
            fault = exact.fault
            degraded += [f"{fault}, extractive exact answer"] if fault else []
        supported: tuple[Sentence, ...] = ()
        if briefing.style.supported and fault != FAILED:
            answer = f"{exact_words(exact.answer)} {draft.said}".strip()
            supported, fault = await write_supported(briefing, answer, scorer, self._recognise)
            degraded += [f"{fault}, no supported answer"] if fault else []
        return exact, supported


def shown_of(briefing: Briefing, draft: Draft) -> tuple[str, ...] | None:
    """The ids of the passages that the model's prompts held; None where it was not asked."""
    if not briefing.is_asked:
        return None
    return tuple(item.passage.id for item in draft.shown or briefing.shown)


def exact_words(exact: ExactAnswer) -> str:
    """The exact answer as a sentence of a prompt; "" for none."""
    if isinstance(exact, list):
        return f"{', '.join(group[0] for group in exact)}." if exact else ""
    return f"{exact.capitalize()}." if exact else ""
