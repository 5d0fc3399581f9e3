"""Write a cited answer from ranked evidence in two stages (paper 000, section 3.3).

The model first writes the ideal answer; each of its sentences is attributed to evidence or
dropped. Then it gives the exact answer under constrained decoding, with the ideal answer in the
prompt. If the model fails, the answer is extracted from the evidence, and `degraded` says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

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
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.ask_model import (
    EXACT_TYPES,
    FAILED,
    Briefing,
    WriterLimits,
    extractive_loss,
)
from serve.answer.calibration import Calibration
from serve.answer.decide_verdict import Written, decide_verdict
from serve.answer.examples.few_shot import ExampleMemory
from serve.answer.extract_answer import extract_exact, extract_ideal
from serve.answer.names.cluster_names import Recognise
from serve.answer.names.score_names import NameModel
from serve.answer.prepare_briefing import BriefingMaker
from serve.answer.read_evidence import (
    CachedReader,
    TextReader,
    answering,
)
from serve.answer.show_sides import note_sides, quote_opposition
from serve.answer.write_exact import Exact, write_exact
from serve.answer.write_ideal import Draft, counted, write_ideal, write_supported
from serve.contracts.answer_events import stream_events
from serve.contracts.stage_calls import stage_method
from serve.llm.chat_form import Message, Say
from serve.llm.language_model import NO_MODEL, ChatModel, CountedModel, NoModelError
from serve.llm.model_roles import NO_MODELS, ModelRoles, Role
from serve.support.attribute_sentences import (
    Encode,
    FallbackScorer,
    ReaderSupport,
    SimilaritySupport,
    Stance,
    SupportScorer,
    cached_encode,
    entailment,
)
from serve.wording.verdict_words import LOST_ANSWER

log = logging.getLogger(__name__)

UNCHECKED = "support: model lost, sentences checked by likeness"
BY_WORDING = "support: encoder lost, sentences checked by wording"
# A passage is checked for contradiction if it has at least this share of a claim's words.
SHARED = 0.5
# Number of passages, the most similar ones, that the reader model reads to check a sentence.
MAX_CHECKED = 10
# Number of sentences quoted if no answer is stated.
MAX_CLOSEST = 3
DEFAULT_STYLE = AnswerSettings()


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """Fields that the writer adds to an Answer.

    `stances` is the stance of each passage towards the answer, by the passage's id. `ideal`,
    `exact` and `guesses` are the best guess whatever the `verdict`; `guesses` is `exact` for
    formats that force a choice (see Exact). See Answer for `verdict`, `confidence` and `stance_on`.
    `closest` quotes the evidence if no answer is stated, unless it is `unrelated`. `shown` are the
    ids of the passages in the language model's prompts, or None if it was not called.
    `model_calls` is the number of calls to it.
    """

    ideal: tuple[Sentence, ...]
    exact: ExactAnswer
    origin: Literal["generated", "extractive", "none"]
    degraded: tuple[str, ...] = ()
    supported: tuple[Sentence, ...] = ()
    stances: Mapping[str, Stance] = field(default_factory=dict)
    verdict: Verdict = NOT_ENOUGH
    confidence: float = 0.0
    stance_on: str = ""
    closest: tuple[Sentence, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
    shown: tuple[str, ...] | None = None
    model_calls: int = 0
    guesses: ExactAnswer = None
    unrelated: bool = False


class AnswerWriter:
    """Writes answers. `scorer` defaults to embedding similarity, with `reader` for contradictions.

    `reader` decides from the evidence if no language model does; `calibration` gives the
    confidence. `examples` is the folder of the few-shot examples, if there is one. `models` are
    the language models of all roles, which other stages call through `chat`. `namer` ranks the
    names of factoid answers together with the reader.
    """

    def __init__(
        self,
        model: ChatModel | None,
        encode: Encode,
        scorer: SupportScorer | None,
        recognise: Recognise,
        reader: TextReader,
        calibration: Calibration,
        limits: WriterLimits | None = None,
        examples: Path | None = None,
        models: ModelRoles = NO_MODELS,
        namer: NameModel | None = None,
    ) -> None:
        self.models = models
        self._model = model
        self._encode = encode
        self._scorer = scorer
        self._recognise = recognise
        self._reader = CachedReader(reader)
        self._calibration = calibration
        self._briefings = BriefingMaker(
            model,
            limits or WriterLimits(),
            self._reader,
            recognise,
            namer,
            ExampleMemory(examples, encode) if examples else None,
            calibration.no_weight,
        )

    async def write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings = DEFAULT_STYLE,
        say: Say | None = None,
    ) -> WrittenAnswer:
        """Write the answer from `evidence`, best first, with a preset's answer settings (`style`).

        The question's type must be set (`serve.question.guess_type.typed`). `say` is called with
        the pieces of the model's ideal answer before they are checked. Never raises LLMError:
        failures of the model are listed in `degraded`.
        """
        if not evidence:
            exact = extract_exact(question, (), ())
            lost = ("evidence: none found",)
            return WrittenAnswer((), exact, "none", degraded=lost, guesses=exact)
        return await self._write(question, evidence, style, say)

    async def stream_answer(
        self, question: Question, evidence: Sequence[Evidence], style: AnswerSettings
    ) -> AsyncGenerator[str | WrittenAnswer, None]:
        """Yield the pieces of the model's unchecked output, then the answer of `write`."""

        async def work(say: Say) -> str | WrittenAnswer:
            return await self.write(question, evidence, style, say)

        async with aclosing(stream_events(work)) as parts:
            async for part in parts:
                yield part

    async def chat(
        self, messages: Sequence[Message], options: Mapping[str, Any], role: Role, turn: int
    ) -> str:
        """Return the reply of the model for `role`. Raises NoModelError if there is no model."""
        model = self.models.of(role, turn)
        if model is None:
            raise NoModelError(NO_MODEL)
        return await model.chat(messages, **options)

    async def answering(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return how well each text answers the question, 0 to 1, of shape (n,)."""
        readings = await asyncio.to_thread(self._reader.read, question, texts)
        return np.asarray([answering(reading) for reading in readings], np.float32)

    async def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return how strongly each text supports its claim, 0 to 1, for pairs (text, claim)."""
        return await asyncio.to_thread(entailment, pairs, self._scorer, self._reader.read)

    async def _write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings,
        say: Say | None,
    ) -> WrittenAnswer:
        scorer = self._new_scorer()
        briefing, degraded = await self._briefings.make(question, evidence, style)
        asked = CountedModel(self._model) if self._model is not None else None
        briefing = replace(briefing, say=say, model=asked)
        draft, generated = await self._draft(briefing, scorer, degraded)
        exact, supported = await self._after(briefing, draft, scorer, degraded)
        decision = exact.decision or draft.decision
        ideal, stances = await asyncio.to_thread(
            note_sides, briefing, draft.sentences, scorer, exact.answer
        )
        degraded += scorer.losses
        by_model = generated and not briefing.reads_names
        decided = decide_verdict(
            question,
            briefing.citations,
            briefing.answers,
            Written(counted(ideal, style.check), exact.answer, decision, by_model),
            self._calibration,
            style.max_wrong,
        )
        if decided.verdict == "mixed":
            ideal = quote_opposition(briefing, ideal, exact.answer)
        closest = await self._extract(briefing, MAX_CLOSEST) if decided.has_closest else ()
        return WrittenAnswer(
            ideal=ideal,
            exact=exact.answer,
            guesses=exact.guesses,
            origin=("generated" if generated else "extractive") if ideal else "none",
            degraded=tuple(degraded),
            supported=supported,
            stances=stances,
            verdict=decided.verdict,
            confidence=decided.confidence,
            stance_on=decided.stance_on,
            signals=decided.signals,
            closest=closest,
            unrelated=decided.unrelated,
            shown=shown_of(briefing, draft),
            model_calls=asked.calls if asked else 0,
        )

    def _new_scorer(self) -> FallbackScorer:
        """Return the scorer of one answer; it falls back to embeddings, then to shared words."""
        model = [(self._scorer, UNCHECKED)] if self._scorer is not None else []
        likeness = (self._similarity(cached_encode(self._encode)), BY_WORDING)
        return FallbackScorer([*model, likeness], self._similarity(None))

    def _similarity(self, encode: Encode | None) -> SupportScorer:
        return ReaderSupport(SimilaritySupport(encode), self._reader.read, SHARED, MAX_CHECKED)

    async def _draft(
        self, briefing: Briefing, scorer: SupportScorer, degraded: list[str]
    ) -> tuple[Draft, bool]:
        """Return the draft, and True if the model wrote it; failures are added to `degraded`."""
        by_choice = briefing.limits.ideal_from == "evidence"
        draft = Draft() if by_choice else await write_ideal(briefing, scorer, self._recognise)
        if draft.stated and not by_choice:
            return draft, True
        ideal = await self._extract(briefing)
        degraded += [extractive_loss(draft.fault)] if draft.fault else []
        return replace(draft, sentences=ideal), False

    async def _extract(
        self, briefing: Briefing, max_sentences: int | None = None
    ) -> tuple[Sentence, ...]:
        question, citations, answers = briefing.question, briefing.citations, briefing.answers
        return await asyncio.to_thread(extract_ideal, question, citations, answers, max_sentences)

    async def _after(
        self, briefing: Briefing, draft: Draft, scorer: SupportScorer, degraded: list[str]
    ) -> tuple[Exact, tuple[Sentence, ...]]:
        """Return the exact and the supported answer; failures are added to `degraded`."""
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


WRITE = stage_method("writer", AnswerWriter.write, "write", LOST_ANSWER)
STREAM_ANSWER = stage_method("writer", AnswerWriter.stream_answer, "write", LOST_ANSWER)


def shown_of(briefing: Briefing, draft: Draft) -> tuple[str, ...] | None:
    """Return the ids of the passages in the model's prompts; None if the model was not called."""
    if not briefing.is_asked:
        return None
    return tuple(item.passage.id for item in draft.shown or briefing.shown)


def exact_words(exact: ExactAnswer) -> str:
    """Return the exact answer as a sentence for a prompt; "" if there is none."""
    if isinstance(exact, list):
        return f"{', '.join(group[0] for group in exact)}." if exact else ""
    return f"{exact.capitalize()}." if exact else ""
