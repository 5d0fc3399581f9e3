from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.errors import InputError
from serve.answer.examples.example_store import read_round, store_examples, stored_rounds
from tests.serve.answer.examples.test_few_shot import row


def feedback(folder: Path, name: str, **answers: str) -> Path:
    rows = [row(id_, f"{id_}?", "summary", ideal_answer=[text]) for id_, text in answers.items()]
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"questions": rows}))
    return path


def test_round_has_the_newest_answers_and_each_file_once(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    store_examples(memory, [feedback(tmp_path / "x", "f.json", a="Old.")])
    # The same file name in another folder is another source.
    newest = [feedback(tmp_path / "y", "f.json", a="New.", b="B.")]
    assert store_examples(memory, newest) == store_examples(memory, newest)
    assert stored_rounds(memory) == [1, 2]
    assert {e.id: e.ideal for e in read_round(memory).examples} == {"a": "New.", "b": "B."}
    with pytest.raises(InputError, match="no few-shot round is stored"):
        read_round(tmp_path / "other")


def test_stored_round_is_not_rewritten(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    store_examples(memory, [feedback(tmp_path, "1.json", a="A.")], 3)
    before = (memory / "round-0003.json").read_bytes()
    for number in (2, 3):
        with pytest.raises(InputError, match=f"round {number} cannot be added after round 3"):
            store_examples(memory, [feedback(tmp_path, "2.json", b="B.")], number)
    assert (memory / "round-0003.json").read_bytes() == before


def test_invalid_feedback_stores_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"questions": [7]}')
    with pytest.raises(InputError, match=r"bad\.json"):
        store_examples(tmp_path / "memory", [tmp_path / "bad.json"])
    assert stored_rounds(tmp_path / "memory") == []


def test_damaged_round_is_named(tmp_path: Path) -> None:
    for text, said in (
        ("no", "not JSON"),
        ("[]", "not a few-shot round"),
        ('{"format": 9}', "format 9, this CiteRay reads 1"),
        ('{"format": 1, "round": 1, "sources": {}, "examples": [{"id": 1}]}', "few-shot round"),
    ):
        (tmp_path / "round-0001.json").write_text(text)
        with pytest.raises(InputError, match=rf"round-0001\.json.*{said}"):
            read_round(tmp_path)
