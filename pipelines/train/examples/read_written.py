"""Read pseudo-documents: documents that a language model wrote as answers to questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import InputError
from pipelines.train.examples.read_lines import read_lines


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A pseudo-document: `text`, written by `model`, answers the question with id `question`."""

    question: str
    text: str
    model: str = ""


def read_written(paths: Sequence[Path]) -> list[WrittenText]:
    """Read JSON lines with `id` and `text`, in order; a row may name its `model`.

    Raises InputError, with file and line, for a row without them or with a blank text.
    """
    texts = []
    for path in paths:
        for number, row in read_lines(path):
            known, text = row.get("id"), row.get("text")
            if not isinstance(known, str) or not isinstance(text, str) or not text.strip():
                raise InputError(
                    f"{path}, line {number}: no pseudo-document; it needs `id`, that of the "
                    "question, and `text`"
                )
            texts.append(WrittenText(known, text, str(row.get("model", ""))))
    return texts
