"""Examples made from tables: contrast sets of yes/no questions, and questions for a name.

BioASQ's yes/no questions are too few to show that "contraindicated" denies "safe" and affirms
"should be avoided". In configs/training/propositions.yaml the same sentences answer a question
and its opposite; in attributes.yaml they give the name that was asked for, or another one. Names
are filled in at random, so that only the wording between them can be learned. This follows
contrast sets (Gardner et al. 2020, "Evaluating Models' Local Decision Boundaries via Contrast
Sets"), used here for training.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from cluster.settings.read_config import CONFIGS
from cluster.text.sentences import sentence_spans
from pipelines.train.examples.mark_names import find_names
from pipelines.train.reader.bioasq import embed
from pipelines.train.reader.records import (
    NO,
    SILENT,
    YES,
    ReaderExample,
    ScoredSentence,
    opposite,
)

TABLES = CONFIGS / "training"
_SIDES = {"affirms": YES, "denies": NO, "open": SILENT}
_SLOT = re.compile(r"\{(\w+)\}")
# Slots that draw from another slot's list, but never the same name.
_AS = {"other": "drug", "second": "disease"}
# Share of examples that ask the opposite, if a row has opposite questions.
_OPPOSITE = 0.5
# Share of examples that are embedded in sentences of a real text.
_EMBEDDED = 0.4
# Weight of these examples; real questions and texts count more.
WEIGHT = 0.7

Row = Mapping[str, Any]


class Names:
    """Draws a name for each slot and uses it wherever the slot occurs.

    A number at the end of a slot does not change its list: {drug2} draws another name of {drug}.
    """

    def __init__(self, names: Mapping[str, Sequence[str]], draw: random.Random) -> None:
        self._names = names
        self._draw = draw
        self._chosen: dict[str, str] = {}

    def fill(self, template: str, instead: str = "") -> str:
        """Return the filled template; the slot `instead` gets a name that is used nowhere else."""
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


def read_table(name: str) -> Any:
    """Read a table of configs/training."""
    return yaml.safe_load((TABLES / f"{name}.yaml").read_text(encoding="utf-8"))


def contrast_examples(
    count: int, texts: Sequence[str], draw: random.Random
) -> Iterator[ReaderExample]:
    """Yield `count` yes/no examples; rows and sides rotate, and `texts` surround some examples."""
    rows: Sequence[Row] = read_table("propositions")["propositions"]
    lists = read_table("names")
    sides = list(_SIDES)
    for number in range(count):
        row = rows[number % len(rows)]
        side = sides[number // len(rows) % len(sides)]
        names = Names(lists, draw)
        reverse = bool(row.get("opposite")) and draw.random() < _OPPOSITE
        asked = draw.choice(row["opposite" if reverse else "ask"])
        question = names.fill(asked)
        sentences = [_sentence(row, side, rows, asked, names, draw)]
        if draw.random() < _EMBEDDED:
            sentences.append(_sentence(row, "open", rows, asked, names, draw))
            draw.shuffle(sentences)
        text = " ".join(sentences)
        if draw.random() < _EMBEDDED:
            text = embed(text, draw.choice(texts), draw)
        stance = opposite(_SIDES[side]) if reverse else _SIDES[side]
        yield ReaderExample(question, text, float(side != "open"), stance, weight=WEIGHT)


def _sentence(
    row: Row, side: str, rows: Sequence[Row], asked: str, names: Names, draw: random.Random
) -> str:
    """Return a sentence for `side`.

    A sentence for the side "open" does not answer the question. It is an open one of the row, or
    answers another question about the same names, or answers this question for another name.
    """
    if side != "open":
        return names.fill(draw.choice(row[side]))
    kind = draw.randrange(3)
    slots = set(_SLOT.findall(asked))
    if kind == 1:
        templates = [
            sentence
            for other in rows
            if other["matter"] != row["matter"]
            for sentence in (*other["affirms"], *other["denies"])
            if slots.intersection(_SLOT.findall(sentence))
        ]
        if templates:
            return names.fill(draw.choice(templates))
    if kind == 2:
        answer = draw.choice([*row["affirms"], *row["denies"]])
        shared = sorted(slots.intersection(_SLOT.findall(answer)))
        if shared:
            return names.fill(answer, instead=draw.choice(shared))
    return names.fill(draw.choice(row["open"]))


def attribute_examples(
    count: int, texts: Sequence[str], draw: random.Random
) -> Iterator[ReaderExample]:
    """Yield `count` questions for a name, a third of them with texts that do not give it."""
    rows: Sequence[Row] = read_table("attributes")["attributes"]
    lists = read_table("names")
    for number in range(count):
        yield _attribute(rows[number % len(rows)], Names(lists, draw), texts, draw)


def _attribute(row: Row, names: Names, texts: Sequence[str], draw: random.Random) -> ReaderExample:
    question = names.fill(draw.choice(row["ask"]))
    others = draw.sample(row["open"], draw.randint(1, min(2, len(row["open"]))))
    sentences = [names.fill(other) for other in others]
    answered = draw.random() >= 0.33
    answer = names.fill(draw.choice(row["says"])) if answered else ""
    if answered:
        sentences = sentences[: draw.randint(0, len(sentences))]
        sentences.insert(draw.randint(0, len(sentences)), answer)
    text = " ".join(sentences)
    if draw.random() < _EMBEDDED:
        text = embed(text, draw.choice(texts), draw)
    at = text.find(answer) if answered else -1
    wanted = [[names[slot]] for slot in row["answer"]]
    marks = tuple(mark for mark in find_names(text, wanted) if at <= mark.begin < at + len(answer))
    scores = tuple(
        ScoredSentence(b, e, float(answered and b < at + len(answer) and at < e))
        for b, e in sentence_spans(text)
    )
    marks = marks if answered else ()
    return ReaderExample(question, text, float(answered), None, marks, scores, WEIGHT)
