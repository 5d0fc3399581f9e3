"""Yes/no questions with sentences that affirm, deny or leave them open, made from a table.

BioASQ's yes/no questions are too few to show that "contraindicated" denies "safe". The table
configs/training/propositions.yaml does, and names are filled in at random so that only the
wording between them can be learned.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence

import yaml

from cluster.reader import NO, SILENT, YES
from cluster.settings import CONFIGS
from pipelines.train.reader_examples import Part, ReaderExample, put_together

TABLE = CONFIGS / "training" / "propositions.yaml"
_SIDES = {"affirms": YES, "denies": NO, "open": SILENT}
_SLOT = re.compile(r"\{(\w+)\}")
# Slots that draw from the names of another, but never the same name.
_AS = {"other": "drug", "second": "disease"}
# How often a neighbour from the open side stands beside the sentence that answers.
_COMPANY = 0.4
# Real questions and snippets count more.
WEIGHT = 0.7


def make_propositions(count: int, draw: random.Random) -> Iterator[ReaderExample]:
    """`count` examples, the rows of the table and its three sides in turn."""
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    rows: Sequence[Mapping[str, Sequence[str]]] = table["propositions"]
    sides = list(_SIDES)
    for number in range(count):
        row = rows[number % len(rows)]
        side = sides[number // len(rows) % len(sides)]
        names = Names(table["names"], draw)
        question = names.fill(draw.choice(row["ask"]))
        known = [(side, names.fill(draw.choice(row[side])))]
        if draw.random() < _COMPANY:
            known.append(("open", names.fill(draw.choice(row["open"]))))
            draw.shuffle(known)
        yield _example(question, known)


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

    def fill(self, template: str) -> str:
        text = _SLOT.sub(lambda match: self[match[1]], template)
        return text[:1].upper() + text[1:]

    def __getitem__(self, slot: str) -> str:
        if slot not in self._chosen:
            names = self._names[_AS.get(slot, slot.rstrip("0123456789"))]
            free = [name for name in names if name not in self._chosen.values()]
            self._chosen[slot] = self._draw.choice(free)
        return self._chosen[slot]
