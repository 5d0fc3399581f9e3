from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.errors import InputError
from serve.synergy.keep_examples import read_round, remember, stored_rounds


def feedback(folder: Path, name: str, **answers: str) -> Path:
    rows = [
        {"id": id_, "type": "summary", "body": f"{id_}?", "ideal_answer": [text]}
        for id_, text in answers.items()
    ]
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"questions": rows}))
    return path


def test_each_round_holds_the_newest_answers_up_to_it_and_no_file_counts_twice(
    tmp_path: Path,
) -> None:
    memory = tmp_path / "memory"
    remember(memory, [feedback(tmp_path / "x", "f.json", a="Old.")])
    # A file of the same name in another folder is another source.
    newest = [feedback(tmp_path / "y", "f.json", a="New.", b="B.")]
    assert remember(memory, newest) == remember(memory, newest)
    assert stored_rounds(memory) == [1, 2]
    for number, answers in ((None, {"a": "New.", "b": "B."}), (1, {"a": "Old."})):
        assert {e.id: e.ideal for e in read_round(memory, number).examples} == answers
    with pytest.raises(InputError, match=r"round 7 is not stored \(there are: 1, 2\)"):
        read_round(memory, 7)


def test_a_stored_round_is_never_rewritten(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    remember(memory, [feedback(tmp_path, "1.json", a="A.")], 3)
    before = (memory / "round-0003.json").read_bytes()
    for number in (2, 3):
        with pytest.raises(InputError, match=f"round {number} cannot be added after round 3"):
            remember(memory, [feedback(tmp_path, "2.json", b="B.")], number)
    assert (memory / "round-0003.json").read_bytes() == before


def test_faulty_feedback_stores_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"questions": [7]}')
    with pytest.raises(InputError, match=r"bad\.json"):
        remember(tmp_path / "memory", [tmp_path / "bad.json"])
    assert stored_rounds(tmp_path / "memory") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no", "not JSON"),
        ("[]", "not a few-shot round"),
        ('{"format": 9}', "format 9, this CiteRay reads 1"),
        ('{"format": 1, "round": 1, "sources": {}, "examples": [{"id": 1}]}', "few-shot round"),
    ],
)
def test_a_damaged_round_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "round-0001.json").write_text(text)
    with pytest.raises(InputError, match=rf"round-0001\.json.*{said}"):
        read_round(tmp_path)
