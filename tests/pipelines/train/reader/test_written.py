from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from pipelines.train.reader import claims
from pipelines.train.reader.records import MAYBE, NO, SILENT, YES
from pipelines.train.reader.written import (
    abstract_of,
    named_examples,
    read_named,
    read_written,
    written_examples,
)
from tests.pipelines.train.tiny_data import abstract, write_lines

SIDES = {"yes": ["Is it A?"], "no": ["Is it B?"], "maybe": ["Is it C?"], "silent": ["Is it D?"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the questions are read from."""
    monkeypatch.setattr(claims, "CONFIGS", tmp_path)
    (tmp_path / "training").mkdir()
    return tmp_path / "training"


def test_articles_are_asked_the_written_questions(folder: Path) -> None:
    write_lines(folder / "articles.jsonl", [{"pmid": 2, **SIDES}, {"pmid": 3, "yes": ["Is it E?"]}])
    found = list(written_examples(read_written("articles"), {2: "Two.", 3: "Three."}.__getitem__))
    assert [(e.question, e.text) for e in found] == [
        *((question, "Two.") for (question,) in SIDES.values()),
        ("Is it E?", "Three."),
    ]
    assert [e.stance for e in found] == [YES, NO, MAYBE, SILENT, YES]
    assert [e.relevant for e in found] == [1.0, 1.0, 1.0, 0.0, 1.0]


def test_abstract_usually_has_its_title() -> None:
    citation, draw = abstract(2, "Aim.", "Result."), random.Random(1)
    found = [abstract_of(citation, draw) for _ in range(100)]
    assert 60 < found.count(citation.search_text) < 80
    assert set(found) == {citation.search_text, citation.abstract}


def test_names_and_their_sentences_are_marked(folder: Path) -> None:
    asked = [{"question": "What inhibits it?", "names": ["drug A", "B2"]}]
    write_lines(folder / "named.jsonl", [{"pmid": 2, "asked": asked, "silent": ["Where is it?"]}])
    text = "Drug A and B2 inhibit it. C does not. More drug A is needed."
    found, absent = named_examples(read_named("named"), {2: text}.__getitem__)
    assert [text[name.begin : name.end] for name in found.names or ()] == ["Drug A", "B2", "drug A"]
    assert [sentence.score for sentence in found.sentences or ()] == [1.0, 0.0, 1.0]
    assert (found.relevant, found.stance) == (1.0, None)
    assert (absent.question, absent.relevant, absent.names) == ("Where is it?", 0.0, ())


@pytest.mark.parametrize(
    ("read", "row"),
    [(read_written, {"yess": ["Is it A?"]}), (read_named, {"yes": ["Is it A?"]})],
)
def test_unknown_keys_are_refused(folder: Path, read: Any, row: dict[str, Any]) -> None:
    write_lines(folder / "other.jsonl", [{"pmid": 2, **row}])
    with pytest.raises(InputError, match=r"other\.jsonl: PMID 2: unknown keys \{'yes"):
        read("other")
