"""BioGen runs scored by human labels and by NLI."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.errors import InputError
from tests.evaluation.evaluate_command.small_runs import (
    label,
    lines,
    measures,
    run_evaluate,
    task_b,
)
from tests.small_index import citation, make_index
from tests.tiny_models import make_tiny_cross_encoder


def test_biogen_b_run_is_scored_by_human_labels(tmp_path: Path) -> None:
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"), label(2, "contradict"))
    found = measures(lines(tmp_path / "run.jsonl", task_b(1, 2, 3)), gold)
    assert found["citation coverage"] == 1
    assert found["citation support rate"] == pytest.approx(1 / 3)
    assert found["citation contradict rate"] == pytest.approx(1 / 3)
    csv = tmp_path / "gold.csv"
    row = '116,Aspirin inhibits fever.,"PMID: 1",supports'
    csv.write_text(f"qid,answer_sentence,citation,judgement\n{row}\n", encoding="utf-8")
    assert measures(tmp_path / "run.jsonl", csv)["citation coverage"] == 1
    assert found["share of unjudged citations"] == pytest.approx(1 / 3)


def test_biogen_task_is_detected_from_the_file(tmp_path: Path) -> None:
    sentence = {
        "text": "Aspirin inhibits fever.",
        "existing_supported_citations": [],
        "supported_citations": [1],
        "contradicted_citations": [2],
    }
    metadata = {"team_id": "t", "run_id": "r", "qa_id": "116"}
    run = lines(tmp_path / "run.jsonl", {"metadata": metadata, "answer": [sentence]})
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"), label(2, "neutral"))
    found = measures(run, gold)
    assert found["support F1"] == 1
    assert found["contradict F1"] == 0
    labels = {"supported_citations_labels": {"1": "supports"}, "contradicted_citations_labels": {}}
    labelled = {**sentence, **labels}
    again = lines(tmp_path / "task-a.jsonl", {"metadata": metadata, "answer": [labelled]})
    assert measures(run, again)["support precision"] == 1


@pytest.fixture
def nli(tmp_path: Path) -> Path:
    """Tiny NLI model that always predicts entailment."""
    from transformers import BertForSequenceClassification

    path = make_tiny_cross_encoder(tmp_path / "nli", labels=3)
    model = BertForSequenceClassification.from_pretrained(path)
    model.classifier.weight.data.zero_()
    model.classifier.bias.data[:] = 0
    model.classifier.bias.data[2] = 9.0
    model.config.id2label = {0: "contradiction", 1: "neutral", 2: "entailment"}
    model.save_pretrained(path)
    return path


@pytest.mark.model
def test_biogen_run_is_judged_by_nli_over_the_index(tmp_path: Path, nli: Path) -> None:
    index = tmp_path / "index"
    make_index(index, [citation(1, "Aspirin inhibits fever.")], shards=1)
    topics = lines(tmp_path / "topics.jsonl", {"topic_id": "116"})
    run = lines(tmp_path / "run.jsonl", task_b(1, 2))
    options = ("--set=support.kind=nli", f"--set=support.model=file:{nli}")
    found = measures(run, topics, *options, f"--set=index.path={index}")
    # The index holds only PMID 1, so PMID 2 cannot be judged.
    assert found["citation coverage"] == 1
    assert found["share of machine judgements"] == found["share of unjudged citations"] == 0.5
    with pytest.raises(InputError, match="no index; the NLI judge reads"):
        run_evaluate(run, topics, *options, f"--set=index.path={tmp_path / 'none'}")
