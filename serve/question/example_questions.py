"""Questions to begin with: those shipped in `configs/examples` whose evidence an index holds."""

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
class Example:
    """A question and the PMIDs of citations that answer it."""

    question: str
    type: QuestionType
    pmids: tuple[int, ...]


@cache
def example_questions() -> tuple[Example, ...]:
    """All of the file, in its order."""
    entries: list[dict[str, Any]] = parse_yaml((CONFIGS / FILE).read_text(encoding="utf-8"), FILE)
    return tuple(Example(e["question"], e["type"], tuple(e["pmids"])) for e in entries)


def held_examples(examples: Iterable[Example], held: set[int]) -> list[Example]:
    """Those of whose evidence nothing is missing from `held`, at most two of each type."""
    taken: Counter[str] = Counter()
    found = []
    for example in examples:
        if taken[example.type] < OF_EACH_TYPE and held.issuperset(example.pmids):
            taken[example.type] += 1
            found.append(example)
    return found
