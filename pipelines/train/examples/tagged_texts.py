"""Texts with marked entities, read from JSON lines and cut into windows for a tagger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.models.tag_entities import text_windows
from pipelines.train.examples.read_lines import read_lines

Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class TaggedText:
    """`entities` are (begin, end, type) in code points; `marked` the types that the file marks.

    A type that is not in `marked` may be in the text all the same.
    """

    text: str
    entities: tuple[Span, ...]
    marked: frozenset[str]


def read_tagged_texts(paths: Sequence[Path]) -> list[TaggedText]:
    """The texts of JSON lines with `text` and `entities` of `start`, `end`, `type`.

    What a file marks is what it has an entity of. Raises InputError, with file and line, for a
    row that is none of these or an entity that lies outside its text.
    """
    texts = []
    for path in paths:
        rows = [_row(path, number, row) for number, row in read_lines(path)]
        marked = frozenset(kind for _, entities in rows for _, _, kind in entities)
        texts += [TaggedText(text, entities, marked) for text, entities in rows]
    return texts


def _row(path: Path, number: int, row: dict[str, Any]) -> tuple[str, tuple[Span, ...]]:
    try:
        text = str(row["text"])
        spans = tuple((int(e["start"]), int(e["end"]), str(e["type"])) for e in row["entities"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}, line {number}: no tagged text ({error!r}); it needs `text` and `entities`, "
            "each with `start`, `end` and `type`"
        ) from error
    for begin, end, kind in spans:
        if not 0 <= begin < end <= len(text):
            raise InputError(
                f"{path}, line {number}: {kind} at {begin} to {end} is outside the text of "
                f"{len(text)} characters; offsets are code points, end exclusive"
            )
    return text, spans


def labels_of(kinds: Iterable[str]) -> list[str]:
    """O, then B- and I- of each type, in order of their names."""
    return ["O", *(f"{part}-{kind}" for kind in sorted(kinds) for part in "BI")]


def windows_of(
    texts: Sequence[TaggedText], tokenizer: Any, limits: Sequence[int]
) -> list[TaggedText]:
    """Windows of at most as many tokens as the `limits`, which the texts take in turn.

    With several limits a tagger sees short texts, such as questions, and long ones.
    """
    windows = []
    for place, text in enumerate(texts):
        for begin, end in text_windows(text.text, tokenizer, limits[place % len(limits)]):
            inside = tuple(
                (max(b, begin) - begin, min(e, end) - begin, kind)
                for b, e, kind in text.entities
                if b < end and e > begin
            )
            windows.append(TaggedText(text.text[begin:end], inside, text.marked))
    return windows


def allowed_labels(
    window: TaggedText, offsets: Sequence[tuple[int, int]], labels: Sequence[str]
) -> list[list[bool]]:
    """For each token at `offsets`, which of `labels` its annotation allows.

    Exactly one, but where a window does not mark a type and marks nothing else: there the token
    may be outside or of that type.
    """
    unmarked = {f"{part}-{kind}" for part in "BI" for kind in _kinds(labels) - window.marked}
    rows = []
    for begin, end in offsets:
        tag = next((s for s in window.entities if begin < s[1] and end > s[0]), None)
        if tag is None:
            rows.append([label == "O" or label in unmarked for label in labels])
            continue
        # The first token of a name may begin before it, where a tokeniser cuts otherwise.
        wanted = f"{'B' if begin <= tag[0] else 'I'}-{tag[2]}"
        rows.append([label == wanted for label in labels])
    return rows


def _kinds(labels: Sequence[str]) -> set[str]:
    return {label.partition("-")[2] for label in labels} - {""}
