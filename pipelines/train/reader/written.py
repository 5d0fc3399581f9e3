"""Training examples from questions that were written for articles: configs/training/*.jsonl.

A row names an article by its PMID; its text is read from the files of the training.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from cluster.errors import InputError
from cluster.records import Citation
from pipelines.train.examples.mark_names import find_names
from pipelines.train.reader.abstracts import ANSWERS
from pipelines.train.reader.bioasq import silent
from pipelines.train.reader.claims import Row, read_rows
from pipelines.train.reader.records import SILENT, ReaderExample, Stance, sentences_with

# Share of questions whose text has the article's title.
_TITLED = 0.7
_SIDES: Mapping[str, Stance] = {**ANSWERS, "silent": SILENT}

# Returns the text of an article by its PMID.
TextOf = Callable[[int], str]


def read_written(name: str) -> list[Row]:
    """Read a file of yes/no questions by answer; raises InputError for a row with other keys."""
    return _read(name, _SIDES)


def read_named(name: str) -> list[Row]:
    """Read a file of questions for names; raises InputError for a row with other keys."""
    return _read(name, ("asked", "silent"))


def _read(name: str, keys: Sequence[str] | Mapping[str, Stance]) -> list[Row]:
    rows = read_rows(name, ("pmid",))
    for row in rows:
        if unknown := row.keys() - {"pmid", *keys}:
            raise InputError(f"{name}.jsonl: PMID {row['pmid']}: unknown keys {unknown}")
    return rows


def written_examples(rows: Sequence[Row], text_of: TextOf) -> Iterator[ReaderExample]:
    """Yield each yes/no question with its article's text."""
    for row in rows:
        for side, stance in _SIDES.items():
            for question in row.get(side, ()):
                text = text_of(row["pmid"])
                yield ReaderExample(question, text, float(stance != SILENT), stance)


def named_examples(rows: Sequence[Row], text_of: TextOf) -> Iterator[ReaderExample]:
    """Yield each question for names with its article's text, in which the names are marked."""
    for row in rows:
        text = text_of(row["pmid"])
        for asked in row.get("asked", ()):
            names = tuple(find_names(text, [asked["names"]]))
            sentences = sentences_with(names, text)
            yield ReaderExample(asked["question"], text, 1.0, None, names, sentences)
        for question in row.get("silent", ()):
            yield silent(question, text, 1.0, sided=False)


def abstract_of(citation: Citation, draw: random.Random) -> str:
    """Return the abstract, usually with the title before it."""
    return citation.search_text if draw.random() < _TITLED else citation.abstract
