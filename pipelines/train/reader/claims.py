"""Training examples from contrast sets without slots, configs/training/*.jsonl.

Tables with slots (pipelines.train.reader.tables) teach a few relations with many names. These rows
teach inference: "adds months of life" affirms "prolongs survival" although they share no word.
Every sentence of a row answers every question of the row, so 10 questions and 12 sentences give
120 pairs, and each question is answered yes by some sentences and no by others. A row of
abstracts.jsonl has one abstract with questions of both answers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cluster.errors import InputError
from cluster.settings.read_config import CONFIGS
from cluster.text.sentences import sentence_spans
from pipelines.train.examples.mark_names import Marked
from pipelines.train.examples.read_lines import read_lines
from pipelines.train.reader.bioasq import embed
from pipelines.train.reader.records import (
    NO,
    SILENT,
    YES,
    ReaderExample,
    ScoredSentence,
    opposite,
)

_SIDES = {"affirms": YES, "denies": NO, "open": SILENT}
_MARKED = re.compile(r"\[\[(.+?)\]\]")
# Share of texts that are embedded in sentences of a real citation.
_EMBEDDED = 0.15
_AROUND = 4
# Share of open texts that answer a question of another row.
_FOREIGN = 0.4
# Share of questions for a name whose text does not give it.
_UNANSWERED = 0.3

# Questions on an abstract: one in five is not answered by it.
_ASKED = {"yes": YES, "no": NO, "silent": SILENT}
_ASKED_IN_TURN = ("yes", "no", "yes", "no", "silent")

Row = Mapping[str, Any]


def read_rows(name: str, keys: Sequence[str]) -> list[Row]:
    """Read a file of configs/training; raises InputError for a row without one of `keys`."""
    path = CONFIGS / "training" / f"{name}.jsonl"
    rows: list[Row] = []
    for number, row in read_lines(path):
        missing = [key for key in keys if not row.get(key)]
        if missing:
            raise InputError(
                f"{path}, line {number}: the row has no {', '.join(missing)}: add them"
            )
        rows.append(row)
    return rows


def claim_examples(
    count: int, texts: Sequence[str], draw: random.Random
) -> Iterator[ReaderExample]:
    """Yield `count` yes/no questions, each with a sentence; rows and sides take turns."""
    rows = read_rows("claims", ("ask", "opposite", *_SIDES))
    sides = list(_SIDES)
    for number in range(count):
        row = rows[number % len(rows)]
        side = sides[number // len(rows) % len(sides)]
        reverse = draw.random() < 0.5
        question = draw.choice(row["opposite" if reverse else "ask"])
        text = draw.choice(row[side])
        if side == "open" and draw.random() < _FOREIGN:
            other = draw.choice(rows)
            if other is not row:
                text = draw.choice([*other["affirms"], *other["denies"]])
        if draw.random() < _EMBEDDED:
            text = embed(text, draw.choice(texts), draw, most=_AROUND)
        stance = opposite(_SIDES[side]) if reverse else _SIDES[side]
        yield ReaderExample(question, text, float(side != "open"), stance)


def abstract_claim_examples(count: int, draw: random.Random) -> Iterator[ReaderExample]:
    """Yield `count` yes/no questions, each with an abstract; abstracts and sides take turns."""
    rows = read_rows("abstracts", ("text", *_ASKED))
    for number in range(count):
        row = rows[number % len(rows)]
        side = _ASKED_IN_TURN[number // len(rows) % len(_ASKED_IN_TURN)]
        stance = _ASKED[side]
        question = draw.choice(row[side])
        yield ReaderExample(question, row["text"], float(stance != SILENT), stance)


def mention_examples(
    count: int, texts: Sequence[str], draw: random.Random
) -> Iterator[ReaderExample]:
    """Yield `count` questions for names, each with a text; rows mark names as [[name]]."""
    rows = read_rows("mentions", ("ask", "says", "open"))
    for number in range(count):
        row = rows[number % len(rows)]
        answered = draw.random() >= _UNANSWERED
        marked = draw.choice(row["says" if answered else "open"])
        text, marks = read_marks(marked)
        if draw.random() < _EMBEDDED:
            whole = embed(text, draw.choice(texts), draw, most=_AROUND)
            at = whole.index(text)
            text, marks = whole, tuple(Marked(m.begin + at, m.end + at) for m in marks)
        sentences = tuple(
            ScoredSentence(begin, end, float(any(begin <= m.begin < end for m in marks)))
            for begin, end in sentence_spans(text)
        )
        question = draw.choice(row["ask"])
        yield ReaderExample(question, text, float(answered), None, marks, sentences)


def read_marks(text: str) -> tuple[str, tuple[Marked, ...]]:
    """Return `text` without its double brackets, and the spans that were within them."""
    plain, marks, last = "", [], 0
    for match in _MARKED.finditer(text):
        plain += text[last : match.start()]
        marks.append(Marked(len(plain), len(plain) + len(match[1])))
        plain += match[1]
        last = match.end()
    return plain + text[last:], tuple(marks)
