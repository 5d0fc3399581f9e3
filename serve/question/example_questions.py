"""Example questions shipped in `configs/examples`, for indexes that contain their evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cluster.answers import QuestionType
from cluster.settings.parse_yaml import parse_yaml
from cluster.settings.read_config import CONFIGS

FILE = "examples/questions.yaml"
OF_EACH_TYPE = 2


@dataclass(frozen=True, slots=True)
class ExampleQuestion:
    """A question and the PMIDs of citations that answer it."""

    question: str
    type: QuestionType
    pmids: tuple[int, ...]


@cache
def example_questions() -> tuple[ExampleQuestion, ...]:
    """Return all example questions, in the order of the file."""
    entries: list[dict[str, Any]] = parse_yaml((CONFIGS / FILE).read_text(encoding="utf-8"), FILE)
    return tuple(ExampleQuestion(e["question"], e["type"], tuple(e["pmids"])) for e in entries)


def held_examples(examples: Iterable[ExampleQuestion], held: set[int]) -> list[ExampleQuestion]:
    """Return the examples whose PMIDs are all in `held`, at most OF_EACH_TYPE per type."""
    taken: Counter[str] = Counter()
    found = []
    for example in examples:
        if taken[example.type] < OF_EACH_TYPE and held.issuperset(example.pmids):
            taken[example.type] += 1
            found.append(example)
    return found
