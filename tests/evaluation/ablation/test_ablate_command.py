"""What `citeray ablate` writes, prints and refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cluster.errors import InputError
from cluster.settings.settings import Settings, load_settings
from serve.http.api import create_api
from serve.llm.model_roles import ModelRoles
from tests.evaluation.ablation.ablation_runs import ROWS, Ablation, FlakyService, app
from tests.serve.chat_endpoint import chat_endpoint
from tests.serve.http_server import serving
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow


def test_without_a_folder_the_runs_lie_beside_the_index(
    run: Ablation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.folder)
    common = ["--questions", str(run.questions), "--gold", str(run.gold)]
    options = ["--set", f"serve.port={run.port}", "--set", "llm.kind=none"]
    done = CliRunner().invoke(app, ["bm25", *common, *options], catch_exceptions=False)
    assert done.exit_code == 0
    assert len(list(run.folder.glob(".citeray/ablate/*/bm25.json"))) == 1


def test_every_system_has_a_run_and_a_record_however_often_it_is_named(run: Ablation) -> None:
    run.text("bm25", "hybrid", "bm25")
    names = ["bm25.json", "bm25.jsonl", "hybrid.json", "hybrid.jsonl"]
    assert sorted(path.name for path in run.output.iterdir()) == names
    told = [line for line in run.log.splitlines() if line.startswith("bm25: ")]
    assert told == ["bm25: answered 3 of 3, about 0 s left"]


def test_lost_stages_are_counted_and_told(tmp_path: Path) -> None:
    with serving(create_api(SmallService(broken=("rerank",)), load_settings().serve)) as port:
        found = Ablation(tmp_path, port).text("citeray")
    assert "citeray: 3 of 3 questions: rerank: failed, first-stage order kept" in found


def test_the_tables_show_values_intervals_and_verdicts(run: Ablation) -> None:
    """BM25 finds 1, 1/2 and 1 of the gold; hybrid, in so small an index, all of it."""
    shown = run.text("bm25", "hybrid", "--seeds", "3,4")
    assert "3 questions, index v000001, 95% bootstrap intervals (seed 3, 4)" in shown
    assert "0.5000 to 1.0000" in shown
    assert "no difference shown" in shown
    assert "Means and paired differences from bm25" in shown
    assert "k = 10" in shown
    assert "Lost at each stage" not in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch"], "unknown system 'nosuch'; there are: aqams"),
        (["bm25", "--oracle", "luck"], "--oracle luck: unknown; there are: retrieve"),
        (["bm25", "--seeds=-1"], "must be whole numbers with commas"),
        (["bm25", "--seeds=0,,1"], "must be whole numbers with commas"),
        (["bm25", "--oracle", "retrieve"], "document 'x' does not end in a PMID"),
    ],
)
def test_bad_option_is_refused_before_anything_is_written(
    run: Ablation, arguments: list[str], words: str
) -> None:
    run.gold = run.write(run.folder / "gold.json", [*ROWS[:2], {**ROWS[2], "documents": ["x"]}])
    with pytest.raises(InputError, match=words):
        run.text(*arguments)
    assert not run.output.exists()


def test_questions_without_gold_and_no_questions_are_refused(
    run: Ablation, service: FlakyService
) -> None:
    run.gold = run.write(run.folder / "gold.json", ROWS[:1])
    with pytest.raises(InputError, match=r"gold\.json: lacks 2 of the 3 questions .* 'q1'"):
        run.text("bm25")
    run.questions = run.write(run.folder / "none.json", [])
    with pytest.raises(InputError, match=r"none\.json: holds no question to run"):
        run.text("bm25")
    assert service.asked == []


def test_file_or_folder_that_cannot_be_written_is_named(run: Ablation) -> None:
    for name in ("bm25.jsonl", "bm25.json"):
        (run.output / name).mkdir(parents=True)
        with pytest.raises(InputError, match=r"bm25\.json.*: cannot be written: "):
            run.text("bm25")
        (run.output / name).rmdir()
    run.output = run.questions
    with pytest.raises(InputError, match=r"--output .*questions\.json: cannot be made"):
        run.text("bm25")


@pytest.mark.ray
def test_an_oracle_writes_with_the_settings_model_which_is_served_for_it(
    run: Ablation, local: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Imatinib inhibits BCR-ABL in chronic myeloid leukaemia."
    served: list[Settings] = []
    with chat_endpoint(said) as endpoint:

        @contextmanager
        def serve_models(settings: Settings) -> Iterator[ModelRoles]:
            served.append(settings)
            yield ModelRoles(endpoint.model())

        monkeypatch.setattr("serve.graph.run_graph.served_models", serve_models)
        vllm = [*local, "--oracle", "evidence", "--answers", "--set", "llm.kind=vllm"]
        run.text("citeray-model", *vllm)
    assert [settings.llm.kind for settings in served] == ["vllm"]
    entries = json.loads((run.output / "citeray-model.oracle-evidence.json").read_text())
    ideal = {entry["id"]: entry["ideal_answer"] for entry in entries["questions"]}
    assert said in ideal["q2"]
