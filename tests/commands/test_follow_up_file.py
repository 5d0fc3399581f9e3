"""`citeray ask --after FILE`: earlier answers become turns, and other files are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.errors import InputError
from commands.options import read_turns


def test_reply_becomes_a_turn(tmp_path: Path) -> None:
    reply = {"question": {"body": "And in mice?"}, "ideal": [{"text": "It does."}]}
    plain, completed = tmp_path / "a.json", tmp_path / "b.json"
    plain.write_text(json.dumps({**reply, "understood": None}))
    completed.write_text(json.dumps({**reply, "understood": {"question": "Is X so in mice?"}}))
    assert read_turns([plain, completed]) == [
        {"question": "And in mice?", "answer": "It does."},
        {"question": "Is X so in mice?", "answer": "It does."},
    ]
    assert read_turns(None) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"question": 3}', '{"question": {}}'])
def test_invalid_reply_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"json: not an answer; .*`citeray ask QUESTION -o "):
        read_turns([file])
    with pytest.raises(InputError, match=r"missing\.json: cannot be read: No such file"):
        read_turns([tmp_path / "missing.json"])
