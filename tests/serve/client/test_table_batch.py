from __future__ import annotations

import csv
from dataclasses import asdict, replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from cluster.answers import Question, Sentence
from serve.client.table_batch import COLUMNS, table_batch, to_row
from tests.serve.answering import answer, evidence

ASKED = Question("q1", "=Does it help?", "yesno")
GIVEN = replace(
    answer("=Does it help?"),
    question=ASKED,
    exact="yes",
    ideal=(Sentence("It helps.", (1,), 0.9), Sentence("It does.", (2, 1), 0.9)),
    evidence=tuple(replace(e, title=f"Title {e.passage.pmid}") for e in evidence("a", "b")),
)


@pytest.mark.parametrize("file_format", ["csv", "text"])
def test_batch_is_written_in_its_format(file_format: str, tmp_path: Path) -> None:
    batch = table_batch([ASKED], "citeray", file_format, lambda reply: f"{reply['exact']}\n")
    client = Mock()
    client.answer.return_value = asdict(GIVEN)
    asked = batch.ask(client, ASKED)
    assert "guess" not in client.answer.call_args.args[0]
    assert asked.verdict == "answered"
    file = tmp_path / "out"
    batch.write(file, [asked.entry])
    if file_format == "text":
        assert file.read_text() == "yes\n"
        return
    with file.open(encoding="utf-8-sig", newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert tuple(row) == COLUMNS
    assert row["question"] == "'=Does it help?"
    assert (row["verdict"], row["exact"]) == ("answered", "yes")
    assert (row["answer"], row["pmids"]) == ("It helps. It does.", "1; 2")
    assert row["titles"] == "Title 1; Title 2"


def test_table_states_no_side_if_the_sources_disagree() -> None:
    stated = answer("Does it help?", exact="yes", verdict="answered")
    assert to_row(stated)["exact"] == "yes"
    divided = to_row(replace(stated, verdict="mixed"))
    assert (divided["verdict"], divided["exact"]) == ("mixed", "")
    named = replace(stated, verdict="mixed", exact=[["T790M"]])
    assert to_row(named)["exact"] == "T790M"
