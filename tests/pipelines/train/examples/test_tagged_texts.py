from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from cluster.models.tag_entities import TaggedToken, merge_subwords
from pipelines.train.examples.tagged_texts import (
    TaggedText,
    allowed_labels,
    labels_of,
    read_tagged_texts,
    windows_of,
)
from tests.tiny_models import tiny_tokenizer

pytestmark = [pytest.mark.model, pytest.mark.nightly]

BOTH = frozenset({"Chemical", "Disease"})
LABELS = labels_of(BOTH)


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def entity(begin: int, end: int, kind: str) -> dict[str, Any]:
    return {"start": begin, "end": end, "type": kind}


def tags(text: TaggedText, *offsets: tuple[int, int]) -> list[list[str]]:
    rows = allowed_labels(text, offsets, LABELS)
    return [[label for label, may in zip(LABELS, row, strict=True) if may] for row in rows]


def test_marked_types_are_those_with_an_entity_in_the_file(tmp_path: Path) -> None:
    one = write(
        tmp_path / "a", {"text": "fever", "entities": [entity(0, 5, "Disease")]},
        {"text": "none", "entities": []},
    )  # fmt: skip
    two = write(tmp_path / "b", {"text": "aspirin", "entities": [entity(0, 7, "Chemical")]})
    texts = read_tagged_texts([one, two])
    assert [t.marked for t in texts] == [{"Disease"}, {"Disease"}, {"Chemical"}]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"entities": []}, "line 2: no tagged text"),
        ({"text": "x", "entities": [{"start": 0}]}, "line 2: no tagged text"),
        ({"text": "x", "entities": [entity(0, 2, "D")]}, "D at 0 to 2 is outside"),
        ([1], "line 2: not a JSON object"),
    ],
)
def test_invalid_row_is_refused_with_its_line(tmp_path: Path, row: Any, said: str) -> None:
    path = write(tmp_path / "bad.jsonl", {"text": "fever", "entities": []}, row)
    with pytest.raises(InputError, match=said):
        read_tagged_texts([path])
    with pytest.raises(InputError, match=r"absent\.jsonl: cannot be read"):
        read_tagged_texts([tmp_path / "absent.jsonl"])


def test_unmarked_types_are_allowed_outside_entities() -> None:
    text = TaggedText("fever aspirin", ((0, 5, "Disease"),), frozenset({"Disease"}))
    assert tags(text, (0, 5), (6, 13)) == [["B-Disease"], ["O", "B-Chemical", "I-Chemical"]]


def test_allowed_labels_encode_the_gold_entities() -> None:
    """The service decodes the training labels to the same spans."""
    text = "Drug-induced heart tumour, fever."
    gold = ((13, 25, "Disease"), (27, 32, "Disease"))
    offsets = [(0, 4), (4, 5), (5, 12), (13, 18), (19, 25), (25, 26), (27, 32), (32, 33)]
    rows = [
        TaggedToken(text[b:e], b, e, allowed[0], 1.0)
        for (b, e), allowed in zip(
            offsets, tags(TaggedText(text, gold, BOTH), *offsets), strict=True
        )
    ]
    assert tuple((e.begin, e.end, e.kind) for e in merge_subwords(text, rows)) == gold


def test_windows_end_at_sentences_and_keep_their_entities() -> None:
    first, second = "the gene causes fever .", "Aspirin treats fever ."
    text = f"{first} {second}"
    at = len(first) + 1
    whole = TaggedText(text, ((16, 21, "Disease"), (at, at + 7, "Chemical")), BOTH)
    windows = windows_of([whole], tiny_tokenizer(), [9])
    assert [w.text for w in windows] == [first, second]
    assert [w.entities for w in windows] == [((16, 21, "Disease"),), ((0, 7, "Chemical"),)]
