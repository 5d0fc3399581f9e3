"""BioGen's two tasks over a small index, with runs checked by the linter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Guess, Question, Sentence
from cluster.errors import InputError
from evaluation.lint.lint_run import read_run_file
from serve.client.answer_batch import Batch
from serve.client.biogen_batch import biogen_a_batch, biogen_b_batch
from serve.formats.biogen import read_topics_a, read_topics_b, to_entry_b
from serve.support.attribute_sentences import ReaderSupport, SimilaritySupport
from serve.support.weigh_evidence import Thresholds
from tests.serve.answering import WordReader, answer, encode
from tests.serve.client.service_client import ServiceClient, linted_rows, run_batch
from tests.serve.service import SmallService

TOPIC_A = {
    "meta_data": {"qa_id": 116, "question": "What does metformin do?"},
    "answer": [
        {"text": "Metformin activates AMPK in the liver.", "existing_supported_citations": None},
        {"text": "Warfarin inhibits VKORC1.", "existing_supported_citations": [2]},
        {"text": "Imatinib does not inhibit BCR-ABL.", "existing_supported_citations": []},
    ],
}
TOPIC_B = {"id": "7", "topic": "t", "question": "What does imatinib inhibit?", "narrative": "n"}


def run(service: SmallService, batch: Batch, topics: Path, run_format: str) -> list[dict[str, Any]]:
    output = topics.with_name("run.jsonl")
    run_batch(ServiceClient(service), batch, output)
    assert read_run_file(output, run_format).form == "lines"
    return linted_rows(output, topics, run_format)


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_sentences_are_grounded_with_supporting_and_contradicting_pmids(
    service: SmallService, tmp_path: Path
) -> None:
    topics = write(tmp_path / "topics.json", [TOPIC_A])
    scorer = ReaderSupport(SimilaritySupport(encode), WordReader().read, 0.5)
    batch = biogen_a_batch(read_topics_a(topics), "bm25", scorer, Thresholds())
    (row,) = run(service, batch, topics, "biogen-a")
    sides = [(s["supported_citations"], s["contradicted_citations"]) for s in row["answer"]]
    assert sides == [([1], []), ([], []), ([], [3])]
    assert row["metadata"]["qa_id"] == "116"


def test_every_sentence_of_an_answer_has_citations(service: SmallService, tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", [TOPIC_B])
    (row,) = run(service, biogen_b_batch(topics, "bm25"), topics, "biogen-b")
    assert row["metadata"]["topic_id"] == "7"
    assert row["responses"][0]["citations"] == ["3"]


def test_entry_has_at_most_250_words_and_the_best_guess_with_its_verdict() -> None:
    sentences = [Sentence(" ".join(["word"] * 100), (n,), 1.0) for n in (1, 2, 3)]
    entry = to_entry_b(Question("7", "Q?"), answer(ideal=tuple(sentences)), "run")
    assert [r["citations"] for r in entry["responses"]] == [["1"], ["2"]]
    guess = Guess((Sentence("It may help.", (4,), 0.4),), None)
    said = answer(verdict="not_enough_evidence", confidence=0.2, guess=guess)
    entry = to_entry_b(Question("7", "Q?"), said, "run")
    assert entry["responses"] == [{"text": "It may help.", "citations": ["4"]}]
    assert entry["metadata"]["verdict"] == "not_enough_evidence"
    assert entry["metadata"]["confidence"] == 0.2


def test_topics_are_read_from_json_and_json_lines(tmp_path: Path) -> None:
    topic = {**TOPIC_A, "answer": [{"text": "S.", "existing_supported_citations": ["2", 3]}]}
    lines = tmp_path / "topics.jsonl"
    lines.write_text(f"{json.dumps(topic)}\n\n")
    (found,) = read_topics_a(lines)
    assert found.sentences[0].existing == (2, 3)
    assert [found] == read_topics_a(write(tmp_path / "topics.json", [topic]))


def test_invalid_topic_is_named(tmp_path: Path, subtests: pytest.Subtests) -> None:
    asked = {"qa_id": "1", "question": "Q?"}
    cited = {"text": "S.", "existing_supported_citations": ["x"]}
    for row, said in [
        (7, "record 1: must be an object"),
        ({"question": "Q?", "answer": []}, "field qa_id must be a string"),
        ({"qa_id": "1", "answer": []}, "field question must be a string"),
        ({**asked, "answer": [{}]}, "answer 1: field text"),
        ({**asked, "answer": [cited]}, "existing_supported_citations must be a list of PMIDs"),
    ]:
        with subtests.test(row=row, said=said), pytest.raises(InputError, match=said):
            read_topics_a(write(tmp_path / "t", [row]))
    with pytest.raises(InputError, match="record 2: topic_id '7' occurs twice"):
        read_topics_b(write(tmp_path / "t", [TOPIC_B, TOPIC_B]))
