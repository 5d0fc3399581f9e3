from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.errors import InputError
from pipelines.train.examples.read_questions import GoldQuestion, read_unanswered
from pipelines.train.examples.read_written import WrittenText, read_written
from pipelines.train.examples.relevance_pairs import RelevancePair, make_pairs

pytestmark = pytest.mark.nightly

TEXTS = tuple(f"citation {row}" for row in range(20))
QUESTION = GoldQuestion("which ?", frozenset({3, 5}), "a")


def test_gold_and_pseudo_documents_are_positives() -> None:
    pairs = make_pairs([QUESTION], {"a": ["written"], "b": ["of another"]}, TEXTS, 2, seed=0)
    assert [pair.text for pair in pairs if pair.relevant] == ["citation 3", "citation 5", "written"]
    others = [pair.text for pair in pairs if not pair.relevant]
    assert len(set(others)) == 6
    assert not {"citation 3", "citation 5"} & set(others)


def test_negatives_are_drawn_without_repetition() -> None:
    pairs = make_pairs([QUESTION], {}, TEXTS[:7], 9, seed=0)
    others = sorted(pair.text for pair in pairs if not pair.relevant)
    assert others == [f"citation {row}" for row in (0, 1, 2, 4, 6)]
    with pytest.raises(InputError, match="--corpus needs others too"):
        make_pairs([GoldQuestion("which ?", frozenset({0}))], {}, TEXTS[:1], 1, seed=0)


def test_question_without_documents_yields_no_pair() -> None:
    lone = GoldQuestion("none ?", frozenset(), "n")
    pairs = make_pairs([lone, QUESTION], {}, TEXTS, 1, seed=0)
    assert RelevancePair("none ?", TEXTS[0], False) not in pairs
    assert {pair.question for pair in pairs} == {"which ?"}


def test_pseudo_documents_are_read_and_invalid_rows_refused(tmp_path: Path) -> None:
    file = tmp_path / "w.jsonl"
    rows = [{"id": "a", "text": "x", "model": "m"}, {"id": "b", "text": "y"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert read_written([file]) == [WrittenText("a", "x", "m"), WrittenText("b", "y")]
    for wrong in ({"id": "a"}, {"id": 1, "text": "x"}, {"id": "a", "text": " "}):
        file.write_text(json.dumps(wrong), encoding="utf-8")
        with pytest.raises(InputError, match=r"line 1: no pseudo-document; it needs `id`"):
            read_written([file])


@pytest.mark.parametrize(
    ("rows", "said"),
    [([{"body": "x"}], "question 0: no question with an id"), ([], "no question here")],
)
def test_questions_need_ids(tmp_path: Path, rows: list[dict[str, str]], said: str) -> None:
    file = tmp_path / "q.json"
    file.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_unanswered([file])
