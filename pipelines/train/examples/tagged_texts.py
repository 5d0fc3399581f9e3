"""Read texts with marked entities from JSON lines, and cut them into windows for a tagger."""

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
    """A text; `entities` are (begin, end, type) in code points, end exclusive.

    `marked` are the types that the file marks. Other types may occur in the text unmarked.
    """

    text: str
    entities: tuple[Span, ...]
    marked: frozenset[str]


def read_tagged_texts(paths: Sequence[Path]) -> list[TaggedText]:
    """Read JSON lines with `text` and `entities`, each with `start`, `end` and `type`.

    A file counts as marking every type of which it has an entity. Raises InputError, with file and
    line, for a row of another form or an entity outside its text.
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
            f"{path}, line {number}: not a tagged text ({error!r}); it needs `text` and "
            "`entities`, each with `start`, `end` and `type`"
        ) from error
    for begin, end, kind in spans:
        if not 0 <= begin < end <= len(text):
            raise InputError(
                f"{path}, line {number}: {kind} at {begin} to {end} is outside the text of "
                f"{len(text)} characters; offsets are code points, end exclusive"
            )
    return text, spans


def labels_of(kinds: Iterable[str]) -> list[str]:
    """Return O, then B- and I- of each type, in the order of the types' names."""
    return ["O", *(f"{part}-{kind}" for kind in sorted(kinds) for part in "BI")]


def windows_of(
    texts: Sequence[TaggedText], tokenizer: Any, limits: Sequence[int]
) -> list[TaggedText]:
    """Cut texts into windows; text i has at most `limits[i % len(limits)]` tokens per window.

    With several limits, a tagger is trained on both short texts, such as questions, and long ones.
    """
    windows = []
    for position, text in enumerate(texts):
        for begin, end in text_windows(text.text, tokenizer, limits[position % len(limits)]):
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
    """Return for each token at `offsets` which of `labels` its annotation allows.

    A token in an entity has exactly one label. Other tokens may be outside, or of a type that the
    window's file does not mark.
    """
    unmarked = {f"{part}-{kind}" for part in "BI" for kind in _kinds(labels) - window.marked}
    rows = []
    for begin, end in offsets:
        tag = next((s for s in window.entities if begin < s[1] and end > s[0]), None)
        if tag is None:
            rows.append([label == "O" or label in unmarked for label in labels])
            continue
        # The first token may begin before the entity, if the tokeniser splits elsewhere.
        wanted = f"{'B' if begin <= tag[0] else 'I'}-{tag[2]}"
        rows.append([label == wanted for label in labels])
    return rows


def _kinds(labels: Sequence[str]) -> set[str]:
    return {label.partition("-")[2] for label in labels} - {""}
