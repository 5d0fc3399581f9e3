"""Select few-shot examples for a question: the most similar ones that experts approved.

They are given to the model as turns of the conversation (paper 001, section 6.1), or as text in a
prompt that contains `$examples` (paper 000, section 3.3.1).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from cluster.answers import Question
from cluster.errors import CiteRayError
from cluster.index.vectors import Vectors
from cluster.text.sentences import sentence_spans
from serve.answer.examples.example_store import Round, read_round, stored_rounds
from serve.answer.examples.read_examples import FewShotExample
from serve.llm.chat_form import Message
from serve.llm.prompts import quote
from serve.support.attribute_sentences import Encode

Stage = Literal["ideal", "exact"]
# Maximum length of the ideal answer in an example, cut after a complete sentence if possible.
MAX_CHARACTERS = 600


class EncoderLostError(CiteRayError):
    """The encoder of the examples failed, timed out, or its process has died."""


class ExampleMemory:
    """Exact vector search over the questions of the newest round in a folder.

    A round that is stored while the service runs is used from the next question on. Thread-safe.
    """

    def __init__(self, folder: Path, encode: Encode) -> None:
        self._folder = folder
        self._encoder = encode
        self._lock = threading.Lock()
        self._round = Round(0, {}, ())
        self._vectors: Vectors = np.empty((0, 0), np.float32)

    @property
    def is_empty(self) -> bool:
        """Return True if no round is stored."""
        return not stored_rounds(self._folder)

    def nearest(self, question: Question, limit: int) -> list[FewShotExample]:
        """Return the `limit` nearest examples of the question's type, best first.

        Examples with the id or the words of the question itself are left out. Raises InputError if
        no round is stored or the newest cannot be read, and EncoderLostError if the encoder fails.
        """
        round_, vectors = self._newest()
        asked = _words(question.body)
        fitting = [
            position
            for position, example in enumerate(round_.examples)
            if example.type == question.type
            and example.id != question.id
            and _words(example.body) != asked
        ]
        if not fitting or not limit:
            return []
        scores = vectors[fitting] @ self._encode([question.body])[0]
        order = np.argsort(-scores, kind="stable")[:limit].tolist()
        return [round_.examples[fitting[position]] for position in order]

    def _encode(self, texts: list[str]) -> Vectors:
        try:
            return self._encoder(texts)
        except Exception as error:  # An encoder in another process can raise any error.
            raise EncoderLostError(f"the encoder of examples failed: {error!r}") from error

    def _newest(self) -> tuple[Round, Vectors]:
        with self._lock:
            stored = stored_rounds(self._folder)
            if not stored or stored[-1] != self._round.number:
                new = read_round(self._folder)
                bodies = [example.body for example in new.examples]
                self._vectors = self._encode(bodies) if bodies else self._vectors
                self._round = new
            return self._round, self._vectors


def as_text(examples: Sequence[FewShotExample], stage: Stage) -> str:
    """Return the examples as text for a prompt, or "" if none has an answer for this stage."""
    lines = []
    for example in _answered(examples, stage):
        line = f"Question: {quote(example.body)} -> "
        if stage == "exact" and example.ideal:
            line += f"Summary of relevant information: {_short(example.ideal)} - "
        lines.append(line + f"answer: {_said(example, stage)}")
    return "\n".join(["Examples of questions and good answers:", *lines]) if lines else ""


def as_turns(examples: Sequence[FewShotExample], stage: Stage, *, reasoned: bool) -> list[Message]:
    """Return the examples as user and assistant turns, the most similar one last.

    The answers have the format in which the model must reply.
    """
    turns: list[Message] = []
    for example in reversed(_answered(examples, stage)):
        turns.append(Message(role="user", content=f"Question: {quote(example.body)}"))
        turns.append(Message(role="assistant", content=_reply(example, stage, reasoned)))
    return turns


def _answered(examples: Sequence[FewShotExample], stage: Stage) -> list[FewShotExample]:
    if stage == "ideal":
        return [example for example in examples if example.ideal]
    return [example for example in examples if example.exact]


def _reply(example: FewShotExample, stage: Stage, reasoned: bool) -> str:
    if reasoned:
        answer = json.loads(_said(example, stage))
        reasoning = {"chain_of_thought": _short(example.ideal)}
        return json.dumps({**reasoning, "answer": answer}, ensure_ascii=False)
    if stage == "ideal":
        return _short(example.ideal)
    if isinstance(example.exact, str):
        return example.exact
    return json.dumps({"answers": json.loads(_said(example, stage))}, ensure_ascii=False)


def _said(example: FewShotExample, stage: Stage) -> str:
    """Return the answer as JSON, one name per group of synonyms (BioASQ's rule since year 5)."""
    if stage == "ideal":
        value: str | list[str] | None = _short(example.ideal)
    elif isinstance(example.exact, list):
        value = [quote(group[0]) for group in example.exact]
    else:
        value = example.exact
    return json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    text = quote(text)
    ends = [end for _, end in sentence_spans(text) if end <= MAX_CHARACTERS]
    return text[: ends[-1]] if ends else text[:MAX_CHARACTERS]


def _words(text: str) -> list[str]:
    return text.casefold().split()
