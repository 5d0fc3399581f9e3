"""Questions for a name or a figure beside sentences that give it or do not, made from a table.

BioASQ's snippets nearly all answer their question, so they hardly show that a sentence on the same
matter may name other things. The table configs/training/attributes.yaml does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from cluster.settings.read_config import CONFIGS
from pipelines.train.examples.mark_names import Marked, find_names
from pipelines.train.examples.propositions import WEIGHT, Names, read_names
from pipelines.train.examples.reader_examples import Part, ReaderExample, put_together

TABLE = CONFIGS / "training" / "attributes.yaml"
# How many passages of a question do not answer it, and how many sentences stand beside an answer.
_SILENT = 0.3
_COMPANY = 2


def make_attributes(count: int, draw: random.Random) -> Iterator[ReaderExample]:
    """`count` examples, the rows of the table in turn."""
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    lists = read_names()
    rows: Sequence[Mapping[str, Any]] = table["attributes"]
    for number in range(count):
        yield _example(rows[number % len(rows)], Names(lists, draw), draw)


def _example(row: Mapping[str, Any], names: Names, draw: random.Random) -> ReaderExample:
    question = names.fill(draw.choice(row["ask"]))
    others = draw.sample(row["open"], draw.randint(1, min(_COMPANY, len(row["open"]))))
    known = [(names.fill(other), Part(0, 0, False, None, 0.0, WEIGHT)) for other in others]
    if draw.random() < _SILENT:
        return ReaderExample(question, *put_together(known), ())
    answer = names.fill(draw.choice(row["says"]))
    known = known[: draw.randint(0, len(known))]
    known.insert(draw.randint(0, len(known)), (answer, Part(0, 0, True, None, 1.0, WEIGHT)))
    text, parts = put_together(known)
    begin = next(part.begin for part in parts if part.relevant)
    wanted = [[names[slot]] for slot in row["answer"]]
    marks = (Marked(begin + m.begin, begin + m.end) for m in find_names(answer, wanted))
    return ReaderExample(question, text, parts, tuple(marks))
