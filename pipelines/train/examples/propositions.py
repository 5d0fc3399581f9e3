"""Yes/no questions with sentences that affirm, deny or leave them open, made from a table.

BioASQ's yes/no questions are too few to show that "contraindicated" denies "safe". The table
configs/training/propositions.yaml does, and names are filled in at random so that only the
wording between them can be learned.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from cluster.models.readings import NO, SILENT, YES
from cluster.settings.read_config import CONFIGS
from pipelines.train.examples.reader_examples import Part, ReaderExample, put_together

TABLE = CONFIGS / "training" / "propositions.yaml"
NAMES = CONFIGS / "training" / "names.yaml"
_SIDES = {"affirms": YES, "denies": NO, "open": SILENT}
_SLOT = re.compile(r"\{(\w+)\}")
# Slots that draw from the names of another, but never the same name.
_AS = {"other": "drug", "second": "disease"}
# How often a sentence that leaves the question open stands beside the one that answers.
_COMPANY = 0.4
# Real questions and snippets count more.
WEIGHT = 0.7

Row = Mapping[str, Any]


def read_names() -> Mapping[str, Sequence[str]]:
    """The lists of names by the slots that draw from them."""
    names: Mapping[str, Sequence[str]] = yaml.safe_load(NAMES.read_text(encoding="utf-8"))
    return names


def make_propositions(count: int, draw: random.Random) -> Iterator[ReaderExample]:
    """`count` examples, the rows of the table and its three sides in turn."""
    rows: Sequence[Row] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["propositions"]
    lists = read_names()
    sides = list(_SIDES)
    for number in range(count):
        row = rows[number % len(rows)]
        side = sides[number // len(rows) % len(sides)]
        names = Names(lists, draw)
        asked = draw.choice(row["ask"])
        question = names.fill(asked)
        known = [(side, _sentence(row, side, rows, asked, names, draw))]
        if draw.random() < _COMPANY:
            known.append(("open", _sentence(row, "open", rows, asked, names, draw)))
            draw.shuffle(known)
        yield _example(question, known)


def _sentence(
    row: Row, side: str, rows: Sequence[Row], asked: str, names: Names, draw: random.Random
) -> str:
    """A sentence of that side. One that leaves the question open is, by chance, the row's own, or
    answers another question of the same subject, or answers this one of another subject.
    """
    if side != "open":
        return names.fill(draw.choice(row[side]))
    kind = draw.randrange(3)
    if kind == 1:
        slots = set(_SLOT.findall(asked))
        told = [
            sentence
            for other in rows
            if other["matter"] != row["matter"]
            for sentence in (*other["affirms"], *other["denies"])
            if slots.intersection(_SLOT.findall(sentence))
        ]
        if told:
            return names.fill(draw.choice(told))
    if kind == 2:
        answer = draw.choice([*row["affirms"], *row["denies"]])
        shared = sorted(set(_SLOT.findall(asked)).intersection(_SLOT.findall(answer)))
        if shared:
            return names.fill(answer, instead=draw.choice(shared))
    return names.fill(draw.choice(row["open"]))


def _example(question: str, known: Sequence[tuple[str, str]]) -> ReaderExample:
    relevant = [side != "open" for side, _ in known]
    parts = [
        (text, Part(0, 0, answers, _SIDES[side], float(answers), WEIGHT))
        for answers, (side, text) in zip(relevant, known, strict=True)
    ]
    return ReaderExample(question, *put_together(parts))


class Names:
    """One name a slot, the same wherever the slot stands in a question and its passage.

    A slot draws from the list of its name, less a number at its end: {drug2} is another {drug}.
    """

    def __init__(self, names: Mapping[str, Sequence[str]], draw: random.Random) -> None:
        self._names = names
        self._draw = draw
        self._chosen: dict[str, str] = {}

    def fill(self, template: str, instead: str = "") -> str:
        """The template with its names, and in the slot `instead` a name of nothing else."""
        stranger = f"{instead}0"
        text = _SLOT.sub(
            lambda match: self[stranger if match[1] == instead else match[1]], template
        )
        return text[:1].upper() + text[1:]

    def __getitem__(self, slot: str) -> str:
        if slot not in self._chosen:
            kind = slot.rstrip("0123456789")
            names = self._names[_AS.get(kind, kind)]
            free = [name for name in names if name not in self._chosen.values()]
            self._chosen[slot] = self._draw.choice(free)
        return self._chosen[slot]
