"""From ranked evidence to a cited answer, in two stages (paper 000, section 3.3).

The ideal answer is written from the evidence, each of its sentences attributed or
dropped; the exact answer follows under constrained decoding, with the ideal one passed
on. Where the model fails, the evidence itself answers, and the answer says so.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cluster.errors import LLMError
from cluster.records import (
    Evidence,
    ExactAnswer,
    Question,
    QuestionType,
    Sentence,
)
from serve.attribute_sentences import (
    Encoder,
    SimilaritySupport,
    SupportScorer,
    attribute,
    borrowed_names,
)
from serve.clean_answer import clean_answer, clean_entities
from serve.compare_wording import read_wording
from serve.extract_answer import extract_ideal
from serve.extract_exact import MAX_CHARS, MAX_FACTOIDS, MAX_LIST, Recogniser, extract_exact
from serve.guess_type import guess_type
from serve.language_model import ChatModel
from serve.name_shapes import names_by_shape
from serve.prompts import Prompt, load_prompt, number_passages, quote

log = logging.getLogger(__name__)

FAILED = "llm: failed"
UNUSABLE = "llm: nothing usable"
ABSENT = "llm: not configured"

_ENTITIES: Mapping[str, int] = {"factoid": MAX_FACTOIDS, "list": MAX_LIST}


@dataclass(frozen=True, slots=True)
class WriterLimits:
    """What one answer may cost: new tokens by stage, evidence in characters, strictness.

    `exact_from` evidence leaves the exact answer to the evidence alone. It is for models
    too weak to choose: SmolLM2-135M says yes to every question.
    """

    ideal_tokens: int = 96
    exact_tokens: int = 64
    temperature: float = 0.0
    evidence_characters: int = 3000
    support_threshold: float = 0.5
    deadline_s: float = 30.0
    exact_from: Literal["model", "evidence"] = "model"


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """What the writer adds to an Answer. `type` is the question's, or the one guessed;
    `dropped` holds the model's sentences that nothing supported.
    """

    type: QuestionType
    ideal: tuple[Sentence, ...]
    exact: ExactAnswer
    origin: Literal["generated", "extractive", "none"]
    degraded: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class AnswerWriter:
    """Writes answers. `scorer` defaults to similarity with lexical checks over `encode`."""

    def __init__(
        self,
        model: ChatModel | None,
        encode: Encoder,
        scorer: SupportScorer | None,
        recognise: Recogniser,
        limits: WriterLimits | None = None,
    ) -> None:
        self._model = model
        self._encode = encode
        self._scorer = scorer
        self._recognise = recognise
        self._limits = limits or WriterLimits()
        self._ideal = load_prompt("ideal")
        self._exact = {kind: load_prompt(f"exact-{kind}") for kind in ("yesno", "factoid", "list")}

    async def write(self, question: Question, evidence: Sequence[Evidence]) -> WrittenAnswer:
        """The answer from `evidence` in its order, retracted citations left out.

        Never raises LLMError: what the model could not do is in `degraded`.
        """
        kind = guess_type(question.body) if question.type == "unknown" else question.type
        question = Question(question.id, question.body, kind)
        usable = [item for item in evidence if not item.retracted]
        if not usable:
            exact = extract_exact(kind, question.body, (), self._recognise)
            return WrittenAnswer(kind, (), exact, "none", ("evidence: none found",))
        encode = remember(self._encode)
        ideal, dropped, fault = await self._generate(question, usable, encode)
        origin: Literal["generated", "extractive"] = "extractive" if fault else "generated"
        if fault:
            ideal = await asyncio.to_thread(extract_ideal, question, usable, encode)
        degraded = [f"{fault}, extractive answer"] if fault else []
        exact = None
        if kind in self._exact:
            exact, fault = await self._choose(question, usable, ideal, fault)
            degraded += [f"{fault}, extractive exact answer"] if fault else []
        return WrittenAnswer(
            kind, ideal, exact, origin if ideal else "none", tuple(degraded), dropped
        )

    async def _generate(
        self, question: Question, evidence: Sequence[Evidence], encode: Encoder
    ) -> tuple[tuple[Sentence, ...], tuple[str, ...], str]:
        """(supported sentences, dropped ones, "" or why there is no answer)."""
        if self._model is None:
            return (), (), ABSENT
        try:
            text = await self._ask(self._ideal, question, evidence, self._limits.ideal_tokens)
        except LLMError as error:
            log.warning("ideal answer of %s: %s", question.id, error)
            return (), (), FAILED
        sentences = clean_answer(text, self._ideal.system)
        if question.type in _ENTITIES:
            sentences = [s for s in sentences if not answers_nothing(s, question.body)]
        scorer = self._scorer or SimilaritySupport(encode)
        found = await asyncio.to_thread(
            attribute, sentences, evidence, scorer, threshold=self._limits.support_threshold
        )
        cited = [
            None if sentence is None or self._borrows(sentence, evidence, question) else sentence
            for sentence in found
        ]
        kept = tuple(sentence for sentence in cited if sentence is not None)
        dropped = tuple(s for s, c in zip(sentences, cited, strict=True) if c is None)
        return kept, dropped, "" if kept else UNUSABLE

    def _borrows(
        self, sentence: Sentence, evidence: Sequence[Evidence], question: Question
    ) -> bool:
        names = [entity.text for entity in self._recognise(sentence.text)]
        names += [name for name, _, _ in names_by_shape(sentence.text)]
        return bool(borrowed_names(sentence, evidence, names, question.body))

    async def _choose(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        ideal: Sequence[Sentence],
        fault: str,
    ) -> tuple[ExactAnswer, str]:
        """(exact answer, "" or why the model did not give it); `fault` is the ideal stage's."""
        exact: ExactAnswer = None
        by_choice = self._limits.exact_from == "evidence"
        # A model that has just failed is not waited for a second time.
        if not by_choice and fault not in (FAILED, ABSENT):
            try:
                exact = await self._constrained(question, evidence, ideal)
                fault = "" if exact else UNUSABLE
            except LLMError as error:
                log.warning("exact answer of %s: %s", question.id, error)
                fault = FAILED
        if by_choice or fault:
            exact = await asyncio.to_thread(
                extract_exact, question.type, question.body, evidence, self._recognise
            )
            exact = answered_first(exact, ideal)
        return exact, "" if by_choice else fault

    async def _constrained(
        self, question: Question, evidence: Sequence[Evidence], ideal: Sequence[Sentence]
    ) -> ExactAnswer:
        prompt = self._exact[question.type]
        answer = " ".join(sentence.text for sentence in ideal)
        tokens = self._limits.exact_tokens
        if question.type == "yesno":
            text = await self._ask(
                prompt, question, evidence, tokens, answer=answer, choices=("yes", "no")
            )
            word = text.strip().casefold()
            return word if word in ("yes", "no") else None
        limit = _ENTITIES[question.type]
        schema = entities_schema(limit, MAX_CHARS)
        text = await self._ask(
            prompt, question, evidence, tokens, answer=answer, json_schema=schema
        )
        sources = [item.passage.text for item in evidence]
        names = clean_entities(read_entities(text), sources, limit=limit, max_chars=MAX_CHARS)
        return [[name] for name in names]

    async def _ask(
        self,
        prompt: Prompt,
        question: Question,
        evidence: Sequence[Evidence],
        max_tokens: int,
        answer: str | None = None,
        **constraint: Any,
    ) -> str:
        if self._model is None:
            raise LLMError("llm: not configured; set llm.kind to vllm or url")
        values = {
            "question": quote(question.body),
            "evidence": number_passages(evidence, self._limits.evidence_characters),
        }
        if answer is not None:
            values["answer"] = quote(answer)
        call = self._model.chat(
            prompt.messages(**values),
            max_tokens=max_tokens,
            temperature=self._limits.temperature,
            **constraint,
        )
        try:
            return await asyncio.wait_for(call, self._limits.deadline_s)
        except TimeoutError:
            raise LLMError(f"llm: no answer in {self._limits.deadline_s:g} s") from None


def answered_first(exact: ExactAnswer, ideal: Sequence[Sentence]) -> ExactAnswer:
    """Entities that the ideal answer names before those that it does not; else their order."""
    if not isinstance(exact, list):
        return exact
    said = " ".join(sentence.text for sentence in ideal).casefold()
    return sorted(exact, key=lambda names: not any(name.casefold() in said for name in names))


def answers_nothing(sentence: str, body: str) -> bool:
    """Whether the sentence only repeats words of the question, as small models do."""
    return set(read_wording(sentence).words) <= set(read_wording(body).words)


def entities_schema(limit: int, max_chars: int) -> dict[str, Any]:
    """The JSON schema of `{"answers": [...]}`: 1 to `limit` strings of at most `max_chars`."""
    return {
        "type": "object",
        "properties": {
            "answers": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": max_chars},
                "minItems": 1,
                "maxItems": limit,
            }
        },
        "required": ["answers"],
        "additionalProperties": False,
    }


def read_entities(text: str) -> list[str]:
    """The strings of `{"answers": [...]}`. Raises LLMError if `text` is anything else."""
    try:
        names = json.loads(text)["answers"]
    except (ValueError, KeyError, TypeError):
        raise LLMError(f"llm: the exact answer has not the asked form: {text!r:.200}") from None
    if not isinstance(names, list):
        raise LLMError(f"llm: answers is no list: {text!r:.200}")
    return [name for name in names if isinstance(name, str)]


def remember(encode: Encoder) -> Encoder:
    """`encode`, but each text only once: the steps of one answer ask for the same sentences."""
    known: dict[str, np.ndarray] = {}

    def encode_new(texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
        return np.stack([known[text] for text in texts])

    return encode_new
