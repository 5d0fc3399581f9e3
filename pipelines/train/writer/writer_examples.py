"""Training examples of the writer: a prompt with a question and its snippets, and the gold answer.

The prompt has the same wording as the one for real answers, but does not state the study design and
year of passages, because a BioASQ snippet has neither.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.train.reader.bioasq import AnsweredQuestion
from pipelines.train.recipe import WriterRecipe

# Returns the chat messages of the prompt for a question, given the texts of its evidence.
Ask = Callable[[AnsweredQuestion, Sequence[str]], Sequence[Any]]

_WORD = re.compile(r"\w{4,}")


@dataclass(frozen=True, slots=True)
class WriterExample:
    """The messages of a prompt, and the answer to learn."""

    messages: tuple[Any, ...]
    answer: str


def writer_examples(
    questions: Sequence[AnsweredQuestion], ask: Ask, recipe: WriterRecipe, draw: random.Random
) -> Iterator[WriterExample]:
    """Yield one example of each question whose snippets contain most words of a gold answer.

    An answer with other words would teach the writer to add what the evidence does not say.
    """
    for question in questions:
        texts = _snippets(question, recipe.evidence_characters, draw)
        answers = [" ".join(answer.split()) for answer in question.ideal]
        usable = [a for a in answers if _is_usable(a, texts, recipe)]
        if usable:
            yield WriterExample(tuple(ask(question, texts)), draw.choice(usable))


def _snippets(question: AnsweredQuestion, characters: int, draw: random.Random) -> list[str]:
    """Return snippets in random order that have at most `characters` together, at least one."""
    order = draw.sample(question.snippets, len(question.snippets))
    chosen, left = order[:1], characters - len(order[0])
    for text in order[1:]:
        if len(text) <= left:
            chosen.append(text)
            left -= len(text)
    return chosen


def _is_usable(answer: str, texts: Sequence[str], recipe: WriterRecipe) -> bool:
    if len(answer.split()) > recipe.max_words:
        return False
    words = set(_WORD.findall(answer.lower()))
    found = set(_WORD.findall(" ".join(texts).lower()))
    return bool(words) and len(words & found) >= recipe.least_covered * len(words)
