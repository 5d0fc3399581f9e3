"""`citeray reproduce` with each paper over three questions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cluster.errors import InputError
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from commands.evaluation.reproduce import reproduce
from evaluation.reproduce.read_paper import (
    paper_names,
    paper_settings,
    read_paper,
)
from serve.client.answer_batch import answer_batch
from tests.evaluation.ablation.ablation_runs import ROWS
from tests.evaluation.evaluate_command.small_runs import label, lines
from tests.evaluation.scripted_judge import ScriptedJudge
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint
from tests.serve.corpus_pubmed import CorpusPubMed
from tests.serve.eutils_server import eutils
from tests.serve.http_server import serving
from tests.serve.service import CORPUS

pytestmark = pytest.mark.ray

app = typer.Typer()
app.command()(reproduce)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ChatEndpoint]:
    with chat_endpoint("Metformin activates AMPK in the liver of diabetic mice.") as chat:
        yield chat


@pytest.fixture
def options(tmp_path: Path, local: list[str], endpoint: ChatEndpoint) -> Iterator[list[str]]:
    """Options for a local index, model and PubMed server, and a folder for the runs."""
    with eutils(CorpusPubMed(citations=CORPUS)) as pubmed:
        values = [
            f"entrez.base_url={pubmed.url}",
            f"entrez.cache={tmp_path / 'entrez'}",
            "llm.kind=url",
            f"llm.url={endpoint.url}",
        ]
        output = ["--scale", "small", "--output", str(tmp_path / "runs")]
        yield [*local, *output, *(word for value in values for word in ("--set", value))]


def run(number: str, questions: Path, gold: Path, options: list[str]) -> str:
    common = [number, "--questions", str(questions), "--gold", str(gold)]
    done = CliRunner().invoke(app, [*common, *options])
    if done.exception:
        raise done.exception
    return done.stdout


def run_json(number: str, questions: Path, gold: Path, options: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(number, questions, gold, [*options, "--json"]))
    return found


def values(found: dict[str, Any], table: str, system: str) -> dict[str, float | None]:
    """Return our values of a system's row by column."""
    [shown] = [t for t in found["tables"] if t["name"] == table]
    here = next(row["here"] for row in shown["rows"] if row["system"] == system)
    return {column: cell and cell["value"] for column, cell in here.items()}


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"questions": ROWS}), encoding="utf-8")
    return path


@pytest.mark.nightly
def test_paper_table_shows_new_values_beside_published_ones(
    questions: Path, options: list[str], subtests: pytest.Subtests
) -> None:
    for number, table, system, column in [
        ("000", "Table 1", "sinai", "MAP"),
        ("000", "Table 6", "sinai", "R-2 F1"),
        ("001", "Table 1", "aqams", "Recall"),
        ("001", "Table 4", "aqams2", "Yes/No Acc."),
        ("003", "Table 3", "huang-bm25-llm", "Recall@800"),
        ("003", "Table 5", "huang-6", "recall"),
    ]:
        with subtests.test(number=number, table=table):
            found = run_json(number, questions, questions, options)
            assert found["tables"][0]["rows"][-1]["paper"]
            got = values(found, table, system)[column]
            assert got is not None
            assert 0 <= got <= 1


def test_recall_is_split_by_question_type(questions: Path, options: list[str]) -> None:
    found = run_json("003", questions, questions, options)
    got = values(found, "Table 3", "huang-bm25")
    assert got["list"] is None, "there is no such question"
    assert (got["yes/no"], got["summary"]) == (1, 1)
    assert got["Recall@800"] == pytest.approx((1 + 1 + (got["factoid"] or 0)) / 3)


@pytest.mark.nightly
def test_biorag_is_judged_and_model_calls_are_counted(
    tmp_path: Path, questions: Path, options: list[str]
) -> None:
    judge = ScriptedJudge()
    with serving(judge.app()) as port:
        judged = ["--judge", f"http://127.0.0.1:{port}/v1", "--judge-model", "j"]
        found = run_json("002", questions, questions, [*options, *judged])
    calls = [values(found, "Table 1", f"biorag-v{n}")["LLM calls"] for n in (1, 2, 4, 5, 7)]
    assert calls == [0, 1, 1, 1, 0]
    assert (values(found, "Table 1", "biorag-v6")["LLM calls"] or 0) >= 2
    here = values(found, "Tables 2 and 7", "biorag-v7")
    assert all(here[name] is not None for name in here)
    shallow = values(found, "Table 6", "biorag-v1.evidence-3")
    assert shallow["Faith."] is not None
    runs = {path.stem for path in (tmp_path / "runs").glob("*.json")}
    assert {"biorag-v1", "biorag-v1.evidence-10", "biorag-v7.evidence-3"} <= runs


def test_differences_are_listed_and_a_run_resumes(
    questions: Path, options: list[str], endpoint: ChatEndpoint
) -> None:
    first = run_json("001", questions, questions, options)
    endpoint.asked.clear()
    text = run("001", questions, questions, options)
    told = text.partition("Differences from the paper:")[2]
    assert "llm.model_id: smollm2-135m-instruct, in the paper gpt-4" in told
    assert told.count("The paper uses GPT-3.5 and GPT-4") == 1, "what holds for both, once"
    assert run_json("001", questions, questions, options)["tables"] == first["tables"]
    assert endpoint.asked == []


def topics(path: Path, *, answered: bool) -> Path:
    if not answered:
        return lines(path, {"topic_id": "116", "question": ROWS[0]["body"]})
    sentence = {"text": CORPUS[0].abstract, "existing_supported_citations": []}
    about = {"qa_id": "116", "question": ROWS[0]["body"]}
    return lines(path, {"metadata": about, "answer": [sentence]})


@pytest.mark.nightly
def test_biogen_topics_fill_the_table_of_task_b(
    tmp_path: Path, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    depths = []

    def answer_within_bounds(*args: Any, **options: Any) -> Any:
        depths.append(load_system("udine-b").rerank.depth)
        return answer_batch(*args, **options)

    monkeypatch.setattr("serve.client.answer_batch.answer_batch", answer_within_bounds)
    gold = lines(tmp_path / "gold.jsonl", label(1, "support"), label(2, "contradict"))
    found = run_json("004", topics(tmp_path / "t.json", answered=False), gold, options)
    assert [table["name"] for table in found["tables"]] == ["Table 3"]
    assert values(found, "Table 3", "udine-b")["Citation Coverage"] is not None
    assert set(depths) == {10}
    assert load_system("udine-b").rerank.depth == 100, "the bounds were for this run alone"


def test_paper_files_are_complete(subtests: pytest.Subtests) -> None:
    for number in paper_names():
        with subtests.test(number=number):
            paper = read_paper(number)
            settings = paper_settings(number, "full")
            assert settings.llm.kind != "none"
            for name in paper.systems:
                assert paper.system(name).name == name
            for table in paper.tables:
                assert any(row.system for row in table.rows)
            small = paper_settings(number, "small")
            assert small.split == settings.split or small.split == load_settings().split
            assert small.encoder == load_settings().encoder


def test_invalid_reproduction_is_refused(
    tmp_path: Path, questions: Path, options: list[str], subtests: pytest.Subtests
) -> None:
    absent = tmp_path / "pubmed26n9999.xml"
    absent.write_text("<PubmedArticleSet/>", encoding="utf-8")
    url = "http://x/v1"
    for arguments, message in [
        (["005"], "paper 005: unknown; there are: 000, 001, 002, 003, 004"),
        (["002", "--scale", "tiny"], "--scale tiny: unknown; there are: full, small"),
        (["002", "--judge", "settings"], "they have no models.judge"),
        (
            ["003", "--judge", url, "--judge-model", "j"],
            "no table of this paper has a measure by a judge",
        ),
        (["001", "--corpus", str(absent)], "lacks 1 of the 1 files of --corpus, such as pubmed26n"),
    ]:
        with subtests.test(arguments=arguments), pytest.raises(InputError, match=message):
            run(arguments[0], questions, questions, [*options, *arguments[1:]])


def test_bad_topics_and_missing_corpus_are_refused_before_indexing(
    tmp_path: Path, questions: Path
) -> None:
    missing = ["--set", f"index.path={tmp_path / 'none'}", "--scale", "small"]
    with pytest.raises(InputError, match=r"no index yet; give the PubMed XML .*--corpus FOLDER"):
        run("002", questions, questions, missing)
    topic = lines(tmp_path / "topics.jsonl", {"topic_id": "116"})
    with pytest.raises(InputError, match=r"topics\.jsonl: line 1"):
        run("004", topic, topic, [*missing, "--corpus", str(tmp_path)])
    assert not (tmp_path / "none").exists()
