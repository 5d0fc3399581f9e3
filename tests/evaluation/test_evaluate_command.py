"""`citeray evaluate` on small files of every format, with nothing replaced."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import lxml.html
import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from cluster.errors import InputError
from evaluation.bioasq.rouge import server_averages
from evaluation.evaluate_command import evaluate
from tests.evaluation.scripted_judge import ScriptedJudge
from tests.serve.http_server import serving
from tests.small_index import citation, make_index
from tests.tiny_models import make_tiny_cross_encoder, make_tiny_encoder

URL = "http://www.ncbi.nlm.nih.gov/pubmed/"
app = typer.Typer()
app.command()(evaluate)


@pytest.fixture(autouse=True)
def _no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "models"))


def run_evaluate(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def measures(*arguments: object) -> dict[str, float]:
    plain = json.loads(run_evaluate(*arguments, "--json").stdout)
    return {name: interval["value"] for name, interval in plain["measures"].items()}


def question(id_: str, kind: str = "summary", *documents: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "type": kind,
        "body": f"Is {id_} so?",
        "documents": [URL + d for d in documents],
        **fields,
    }


def snippet(document: str, begin: int, text: str) -> dict[str, Any]:
    return {
        "document": URL + document,
        "beginSection": "abstract",
        "endSection": "abstract",
        "offsetInBeginSection": begin,
        "offsetInEndSection": begin + len(text),
        "text": text,
    }


def write(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps({"questions": list(rows)}), encoding="utf-8")
    return path


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


FOUND = snippet("9", 0, "The ferritin")


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write(
        tmp_path / "gold.json",
        question("1", "yesno", "7", "8", exact_answer="yes", ideal_answer=["Iron is stored."]),
        question("2", "list", "9", exact_answer=[["a"]], snippets=[snippet("9", 4, "ferritin")]),
        question("3", "factoid", "5", exact_answer=[["b"]]),
    )


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(
        tmp_path / "good.json",
        question("1", "yesno", "7", "6", exact_answer="yes", ideal_answer="Iron is stored."),
        question(
            "2", "list", "9", exact_answer=[["a"]], snippets=[snippet("9", 0, "The ferritin")]
        ),
        question("3", "factoid", "5", exact_answer=[["b"]]),
    )


def test_every_family_of_bioasq_is_measured(good: Path, gold: Path) -> None:
    found = measures(good, gold)
    # 1/2 of question 1's documents at rank 1, all of the others'.
    assert found["documents MAP"] == pytest.approx((1 / 2 + 1 + 1) / 3)
    # The 6 that question 1 adds was judged by nobody.
    assert found["documents unjudged rate at 10"] == pytest.approx((1 / 2 + 0 + 0) / 3)
    # 4 to 12 inside 0 to 12, ends inclusive: 9 of 13 said, 9 of 9 asked for.
    assert found["snippets precision"] == pytest.approx(9 / 13)
    assert found["yesno accuracy"] == found["list F1"] == found["factoid MRR"] == 1
    assert found["ROUGE-2 F1"] == 1
    assert "BLEU" not in found


def test_each_value_stands_with_its_interval(good: Path, gold: Path) -> None:
    shown = run_evaluate(good, gold)
    assert shown.exit_code == 0
    assert "documents MAP" in shown.stdout
    assert "0.8333 (0.5000 to 1.0000)" in shown.stdout


def test_what_rouge_itself_would_print_is_told(good: Path, gold: Path) -> None:
    averages = server_averages([(["Iron is stored."], "Iron is stored.")])
    shown = run_evaluate(good, gold).stderr
    assert f"ROUGE-SU4 F1 {averages['ROUGE-SU4 F1']:.5f}" in shown


def test_a_run_of_documents_alone_has_no_answers_measured(tmp_path: Path, gold: Path) -> None:
    run = write(tmp_path / "run.json", question("1", "yesno", "7"), question("2", "list", "9"))
    found = measures(run, gold)
    assert not {"yesno accuracy", "ROUGE-2 F1"} & set(found)


def test_unanswered_questions_and_breaches_are_told(tmp_path: Path, gold: Path) -> None:
    run = write(tmp_path / "run.json", question("2", "list", *map(str, range(1, 13))))
    shown = run_evaluate(run, gold).stderr
    assert "2 of 3 gold questions have no answer" in shown
    assert "breaches of the task's limits or form; `citeray lint` names them" in shown


def test_a_verdict_needs_an_interval_without_0(tmp_path: Path) -> None:
    rows = [question(str(n), "summary", "7") for n in range(12)]
    gold, run = write(tmp_path / "gold", *rows), write(tmp_path / "run", *rows)
    misses = [question(str(n), "summary", "7" if n < 2 else "6") for n in range(12)]
    other = write(tmp_path / "other", *misses)
    plain = json.loads(run_evaluate(run, gold, "--against", other, "--json").stdout)
    assert plain["against"]["documents MAP"]["verdict"] == "better"
    assert plain["against"]["documents unjudged rate at 10"]["verdict"] == "lower"
    shown = run_evaluate(run, gold, "--against", run).stdout
    assert "no difference shown" in shown
    assert "better" not in shown


def test_the_seed_and_resamples_decide_the_interval(tmp_path: Path) -> None:
    rows = [question(str(n), "summary", "7") for n in range(30)]
    said = [question(str(n), "summary", *["7", "6"][: n % 3]) for n in range(30)]
    gold, run = write(tmp_path / "gold", *rows), write(tmp_path / "run", *said)
    outputs = {
        options: run_evaluate(run, gold, "--json", *options).stdout
        for options in [(), ("--seed", "0"), ("--seed", "1"), ("--resamples", "1000")]
    }
    assert outputs[()] == outputs["--seed", "0"]
    assert len(set(outputs.values())) == 3
    assert run_evaluate(run, gold, "--resamples", "999").exit_code == 2


def test_synergys_judged_material_counts_for_nobody(tmp_path: Path, good: Path, gold: Path) -> None:
    judged = {"id": "1", "documents": [{"id": "7", "golden": True}, {"id": "6", "golden": False}]}
    feedback = write(tmp_path / "feedback.json", judged)
    found = measures(good, gold, "--feedback", feedback, "--format", "synergy")
    # Of question 1 only the gold 8 is left, and nothing of the run.
    assert found["documents MAP"] == pytest.approx((0 + 1 + 1) / 3)


def test_qrels_judge_more_documents(tmp_path: Path, good: Path, gold: Path) -> None:
    qrels = tmp_path / "qrels"
    qrels.write_text("1 0 6 0\n", encoding="utf-8")
    assert measures(good, gold, "--qrels", qrels)["documents unjudged rate at 10"] == 0


def test_leakage_is_found_in_training_data_and_in_models_cards(
    tmp_path: Path, good: Path, gold: Path
) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text('{"question": "is 1 SO"}\n', encoding="utf-8")
    shown = run_evaluate(good, gold, "--trained-on", data)
    assert "leakage: 1 of 3 questions and 0 of 4 gold documents" in shown.stderr
    with pytest.raises(InputError, match=r"--trained-on .*none: no such file"):
        run_evaluate(good, gold, "--trained-on", tmp_path / "none")


def store(models: Path, name: str) -> Path:
    """A stored model's folder, as ModelStore lays it out."""
    entry = models / "hf" / name.partition(":")[2].replace("/", "--")
    (entry / "model").mkdir(parents=True)
    record = {"name": name, "sha256": "0" * 64, "path": "model"}
    (entry / ".entry.json").write_text(json.dumps(record), encoding="utf-8")
    return entry / "model"


def test_a_stored_models_card_is_read(tmp_path: Path, good: Path, gold: Path) -> None:
    name = "hf:a/ranker@main"
    folder = store(tmp_path / "models", name)
    (folder / "README.md").write_text("---\ndatasets: [bioasq]\n---\n", encoding="utf-8")
    options = ("--set=reranker.kind=cross-encoder", f"--set=reranker.model={name}")
    shown = run_evaluate(good, gold, *options).stderr
    assert f"leakage: {name} names bioasq as training data" in shown
    (folder / "README.md").unlink()
    shown = run_evaluate(good, gold, *options).stderr
    assert f"training data unknown: {name} (no model card)" in shown


def test_bleu_and_bertscore_are_of_ideal_answers(tmp_path: Path, good: Path, gold: Path) -> None:
    model = make_tiny_encoder(tmp_path / "tiny").parent / "base"
    found = measures(good, gold, "--bertscore", model)
    assert found["BLEU"] == 100
    assert found["BERTScore F1"] == pytest.approx(1, abs=1e-5)
    assert "BERTScore F1" not in measures(good, gold, "--bleu")


def test_a_run_without_ideal_answers_cannot_be_compared_as_text(tmp_path: Path, gold: Path) -> None:
    run = write(tmp_path / "run.json", question("1", "yesno", "7"))
    with pytest.raises(InputError, match="no ideal answer to a question with a gold one"):
        run_evaluate(run, gold, "--bleu")


def judged(good: Path, gold: Path, tmp_path: Path, judge: ScriptedJudge) -> Result:
    encoder = make_tiny_encoder(tmp_path / "encoder")
    with serving(judge.app()) as port:
        return run_evaluate(
            good, gold, "--json", "--judge", f"http://127.0.0.1:{port}/v1", "--judge-model", "j",
            f"--set=encoder.model=file:{encoder}", "--set=encoder.sha256=",
        )  # fmt: skip


def test_ragas_is_measured_by_the_judge_at_the_url(tmp_path: Path, gold: Path) -> None:
    said = question(
        "1", "yesno", ideal_answer="A is true. B is false.", snippets=[snippet("7", 0, "useful")]
    )
    done = judged(write(tmp_path / "run.json", said), gold, tmp_path, ScriptedJudge())
    found = json.loads(done.stdout)
    # Of the answer's two statements the script supports one; "Iron is stored" it does not.
    assert found["measures"]["faithfulness"]["value"] == 0.5
    assert found["measures"]["context precision"]["value"] == 1
    assert found["measures"]["context recall"]["value"] == 0
    assert -1 <= found["measures"]["answer relevancy"]["value"] <= 1
    assert "RAGAS's judge was right on 100% of cases with known verdicts" in found["notes"]
    assert "judged 1 of 1" in done.stderr


def test_a_weak_judge_is_flagged(tmp_path: Path, good: Path, gold: Path) -> None:
    judge = ScriptedJudge()
    judge.wrong = 6
    notes = json.loads(judged(good, gold, tmp_path, judge).stdout)["notes"]
    assert any(n.startswith("weak judge: RAGAS's judge was right on 50% of") for n in notes)


def test_a_judge_needs_a_name(good: Path, gold: Path) -> None:
    with pytest.raises(InputError, match="--judge needs --judge-model"):
        run_evaluate(good, gold, "--judge", "http://127.0.0.1:9/v1")


def task_b(*pmids: int) -> dict[str, Any]:
    return {
        "metadata": {"team_id": "t", "run_id": "r", "topic_id": "116"},
        "responses": [{"text": "Aspirin inhibits fever.", "citations": [str(p) for p in pmids]}],
    }


def label(pmid: int, relation: str) -> dict[str, Any]:
    return {"topic_id": "116", "sentence_number": 1, "pmid": pmid, "relation": relation}


def test_biogen_b_is_measured_by_peoples_labels(tmp_path: Path) -> None:
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"), label(2, "contradict"))
    found = measures(lines(tmp_path / "run.jsonl", task_b(1, 2, 3)), gold)
    assert found["citation coverage"] == 1
    assert found["citation support rate"] == pytest.approx(1 / 3)
    assert found["citation contradict rate"] == pytest.approx(1 / 3)
    assert found["share of unjudged citations"] == pytest.approx(1 / 3)


def test_biogen_a_is_told_from_b_by_its_form(tmp_path: Path) -> None:
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


def test_biogen_without_judgements_says_that_nobody_judged(tmp_path: Path) -> None:
    topics = lines(tmp_path / "topics.jsonl", {"topic_id": "116"}, {"topic_id": "117"})
    done = run_evaluate(lines(tmp_path / "run.jsonl", task_b(1)), topics)
    assert "nobody judged the citations" in done.stderr
    assert "1 of 2 gold questions have no answer" in done.stderr
    assert "uncited sentence rate" in done.stdout
    assert "citation coverage" not in done.stdout


@pytest.fixture
def nli(tmp_path: Path) -> Path:
    """A tiny NLI model that says entailment to everything."""
    from transformers import BertForSequenceClassification

    path = make_tiny_cross_encoder(tmp_path / "nli", labels=3)
    model = BertForSequenceClassification.from_pretrained(path)
    model.classifier.weight.data.zero_()
    model.classifier.bias.data[:] = 0
    model.classifier.bias.data[2] = 9.0
    model.config.id2label = {0: "contradiction", 1: "neutral", 2: "entailment"}
    model.save_pretrained(path)
    return path


def test_biogen_is_judged_by_our_nli_over_the_index(tmp_path: Path, nli: Path) -> None:
    index = tmp_path / "index"
    make_index(index, [citation(1, "Aspirin inhibits fever.")], shards=1)
    topics = lines(tmp_path / "topics.jsonl", {"topic_id": "116"})
    run = lines(tmp_path / "run.jsonl", task_b(1, 2))
    options = ("--set=support.kind=nli", f"--set=support.model=file:{nli}")
    found = measures(run, topics, *options, f"--set=index.path={index}")
    # The index holds 1 alone: nobody can judge 2.
    assert found["citation coverage"] == 1
    assert found["share of machine judgements"] == found["share of unjudged citations"] == 0.5
    with pytest.raises(InputError, match="no index; the NLI judge reads"):
        run_evaluate(run, topics, *options, f"--set=index.path={tmp_path / 'none'}")


def test_biogens_csv_is_a_gold_file(tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    row = '116,Aspirin inhibits fever.,"PMID: 1",supports'
    gold.write_text(f"qid,answer_sentence,citation,judgement\n{row}\n", encoding="utf-8")
    assert measures(lines(tmp_path / "run.jsonl", task_b(1)), gold)["citation coverage"] == 1


def page(folder: Path) -> str:
    return " ".join(lxml.html.parse(folder / "index.html").getroot().text_content().split())


def test_the_report_shows_types_and_the_worst_questions(
    tmp_path: Path, good: Path, gold: Path
) -> None:
    folder = tmp_path / "report"
    done = run_evaluate(good, gold, "--report", folder, "--against", good)
    assert f"report: {folder / 'index.html'}" in done.stderr
    shown = page(folder)
    assert "good.json against gold.json" in shown
    assert "factoid" in shown
    # Question 1 has half of its documents, so it is the worst.
    assert shown.index("Is 1 so?") < shown.index("Is 2 so?")
    assert "gold, missed" in shown
    assert "not gold, unjudged" in shown
    assert "Iron is stored." in shown


def test_the_report_marks_what_a_snippet_shares_with_the_gold(
    tmp_path: Path, good: Path, gold: Path
) -> None:
    run_evaluate(good, gold, "--report", tmp_path)
    marked = lxml.html.parse(tmp_path / "index.html").getroot().iter("mark")
    assert [mark.text_content() for mark in marked].count("ferritin") == 2


def test_a_biogen_report_shows_sentences_with_their_citations(tmp_path: Path) -> None:
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"))
    run_evaluate(lines(tmp_path / "run.jsonl", task_b(1, 2)), gold, "--report", tmp_path)
    assert "Aspirin inhibits fever. [cites 1, 2]" in page(tmp_path)


def test_a_run_that_answers_nothing_is_refused(tmp_path: Path, gold: Path) -> None:
    with pytest.raises(InputError, match=r"answers no question of .*gold"):
        run_evaluate(write(tmp_path / "run.json"), gold, "--report", tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_bioasqs_gold_is_none_of_biogens(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold", question("116", "summary", "7"))
    with pytest.raises(InputError, match="BioASQ's form; name BioGen's judgements or topics"):
        run_evaluate(lines(tmp_path / "run", task_b(1)), gold)


def test_leaving_hard_questions_out_makes_no_answer_better(tmp_path: Path) -> None:
    """Both give the first answer in the gold's words; the second run also gets others wrong."""
    rows = [question(str(n), ideal_answer=[f"Iron number {n} is stored."]) for n in range(6)]
    said = [{**row, "ideal_answer": "No idea at all of that."} for row in rows]
    first = {**rows[0], "ideal_answer": rows[0]["ideal_answer"][0]}
    blank = [{**row, "ideal_answer": ""} for row in rows[1:]]
    gold = write(tmp_path / "gold", *rows)
    few = write(tmp_path / "few", first, *blank)
    many = write(tmp_path / "many", first, *said[1:])
    plain = json.loads(run_evaluate(few, gold, "--against", many, "--bleu", "--json").stdout)
    assert plain["against"]["BLEU"]["value"] == 0
    assert plain["against"]["BLEU"]["verdict"] == "no difference shown"


def test_a_bertscore_model_must_be_there(tmp_path: Path, good: Path, gold: Path) -> None:
    with pytest.raises(InputError, match=r"--bertscore .*none: no such folder"):
        run_evaluate(good, gold, "--bertscore", tmp_path / "none")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([5], "question 0: must be an object"),
        ([{"id": "9", "documents": []}], "id '9' is not in the gold file"),
        ([{"id": "1"}, {"id": "1"}], "question 1: id '1' has an answer before it"),
    ],
)
def test_bad_input_leaves_no_report_behind(
    tmp_path: Path, gold: Path, rows: list[Any], said: str
) -> None:
    run = write(tmp_path / "run.json", *rows)
    with pytest.raises(InputError, match=said):
        run_evaluate(run, gold, "--report", tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_bad_second_run_leaves_no_report_behind(tmp_path: Path, good: Path, gold: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.json: line 1: not JSON"):
        run_evaluate(good, gold, "--against", bad, "--report", tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_runs_of_two_tasks_are_not_compared(tmp_path: Path) -> None:
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"))
    sentence = {"text": "Iron.", "supported_citations": [], "contradicted_citations": []}
    other = {"metadata": {"qa_id": "116"}, "answer": [sentence]}
    with pytest.raises(InputError, match="compare runs of one task"):
        run_evaluate(
            lines(tmp_path / "b", task_b(1)), gold, "--against", lines(tmp_path / "a", other)
        )


def test_a_snippet_that_ends_before_it_begins_costs_only_its_own_gmap(
    tmp_path: Path, gold: Path
) -> None:
    """Lengths 10 - 30 + 1 and 12 - 4 + 1, as the official program has them: -10 in all."""
    backwards = {**snippet("9", 30, ""), "offsetInEndSection": 10}
    row = question("2", "list", "9", snippets=[backwards, snippet("9", 4, "ferritin")])
    found = measures(write(tmp_path / "run.json", row), gold)
    assert found["snippets precision"] == pytest.approx(9 / -10)
    assert "snippets GMAP" not in found


def test_half_a_surrogate_pair_in_an_id_is_printed_as_its_escape(tmp_path: Path) -> None:
    path = tmp_path / "gold.json"
    row = question("x", "summary", "7")
    path.write_text(
        json.dumps({"questions": [{**row, "id": "\ud800"}, {**row, "id": "y"}]}), encoding="utf-8"
    )
    run = write(tmp_path / "run.json", question("y", "summary", "7"))
    command = [sys.executable, "-m", "cluster.cli", "evaluate", str(run), str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert json.loads(done.stdout)["missing"] == ["\ud800"]


def test_numbers_are_finite_in_json(good: Path, gold: Path) -> None:
    assert all(math.isfinite(value) for value in measures(good, gold).values())
