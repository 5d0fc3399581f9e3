import asyncio
import io
import json
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sklearn.metrics import ndcg_score
from typer.testing import CliRunner

from cluster.encoder import Encoder
from cluster.errors import CiteRayError, InputError
from cluster.index.layout import vocabulary_file
from cluster.index.manifest import publish
from cluster.models import checksum
from cluster.records import Question, SearchResult
from cluster.settings import SystemSettings, load_settings, load_system
from evaluation.ablation.ablate_command import ablate, make_plans, print_tables
from evaluation.ablation.ask_graph import Ask, Plan
from evaluation.ablation.run_plans import Run, complete_runs, open_run, run_key
from evaluation.ablation.tabulate_runs import covering, score_ranking, tabulate_runs
from evaluation.bioasq.read_bioasq import read_gold, read_run
from evaluation.bioasq.score_bioasq import score_run
from evaluation.bioasq.score_question import score_documents
from evaluation.bootstrap import Interval, differences, intervals
from serve.formats.bioasq import document_url
from serve.gateway import create_api
from serve.watch_stages import StageLostError
from tests.serve.http_server import free_port, serving
from tests.serve.service import CORPUS, SmallService
from tests.small_index import make_index
from tests.tiny_models import make_tiny_encoder

SETTINGS = load_settings()
app = typer.Typer()
app.command()(ablate)


def row(id_: str, body: str, kind: str, exact: Any, *pmids: int) -> dict[str, Any]:
    snippet = {
        "document": document_url(pmids[0]),
        "beginSection": "abstract",
        "endSection": "abstract",
        "offsetInBeginSection": 0,
        "offsetInEndSection": len(CORPUS[pmids[0] - 1].abstract),
        "text": CORPUS[pmids[0] - 1].abstract,
    }
    made = {"id": id_, "type": kind, "body": body, "ideal_answer": [snippet["text"]]}
    made |= {"documents": [document_url(pmid) for pmid in pmids], "snippets": [snippet]}
    return made if exact is None else {**made, "exact_answer": exact}


ROWS = [
    row("q3", "Does metformin activate AMPK?", "yesno", "yes", 1),
    row("q1", "Which enzyme does warfarin inhibit?", "factoid", [["VKORC1"]], 2, 1),
    row("q2", "What does imatinib inhibit?", "summary", None, 3),
]


class FlakyService(SmallService):
    """Fails on the ids `lost`; says that its index is of `version`."""

    lost: tuple[str, ...] = ()
    version = "v000001"

    async def search(
        self, question: Question, system: SystemSettings, limit: int, snippets: bool
    ) -> SearchResult:
        if question.id in self.lost:
            self.asked.append(question)
            raise StageLostError(f"{question.id} is lost")
        found = await super().search(question, system, limit, snippets)
        return replace(found, index_version=self.version)

    def ids(self) -> list[str]:
        return [question.id for question in self.asked]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FlakyService, int]]:
    service = FlakyService(tmp_path_factory.mktemp("index"))
    with serving(create_api(service, "citeray")) as port:
        yield service, port


@pytest.fixture
def service(served: tuple[FlakyService, int]) -> FlakyService:
    served[0].asked, served[0].lost, served[0].version = [], (), "v000001"
    return served[0]


class Ablation:
    """`citeray ablate` over ROWS into a folder, at an endpoint."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.output = folder / "runs"
        self.port = port
        self.questions = self.write(folder / "questions.json", ROWS)
        self.gold = self.questions
        self.log = ""

    def write(self, path: Path, rows: list[dict[str, Any]]) -> Path:
        path.write_text(json.dumps({"questions": rows}), encoding="utf-8")
        return path

    def text(self, *arguments: str) -> str:
        common = ["--questions", self.questions, "--gold", self.gold, "--output", self.output]
        common += ["--set", f"serve.port={self.port}", "--set", "llm.kind=none"]
        done = CliRunner().invoke(app, [*map(str, common), *arguments])
        if done.exception:
            raise done.exception
        self.log = done.stderr
        return done.stdout

    def json(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text(*arguments, "--json"))
        return found


@pytest.fixture
def run(tmp_path: Path, served: tuple[FlakyService, int], service: FlakyService) -> Ablation:
    return Ablation(tmp_path, served[1])


def test_without_a_folder_the_runs_lie_beside_the_index(
    run: Ablation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.folder)
    common = ["--questions", str(run.questions), "--gold", str(run.gold)]
    options = ["--set", f"serve.port={run.port}", "--set", "llm.kind=none"]
    done = CliRunner().invoke(app, ["bm25", *common, *options], catch_exceptions=False)
    assert done.exit_code == 0
    assert len(list(run.folder.glob(".citeray/ablate/*/bm25.json"))) == 1


@pytest.mark.parametrize("seeds", ["a", "-1", "0,,1", ""])
def test_seeds_that_are_no_numbers_are_refused(run: Ablation, seeds: str) -> None:
    with pytest.raises(InputError, match="must be whole numbers with commas"):
        run.text("bm25", f"--seeds={seeds}")


def test_every_system_has_a_run_and_a_record(run: Ablation) -> None:
    run.text("bm25", "hybrid")
    names = ["bm25.json", "bm25.jsonl", "hybrid.json", "hybrid.jsonl"]
    assert sorted(path.name for path in run.output.iterdir()) == names


def test_the_numbers_are_those_of_evaluate_on_the_same_run_file(run: Ablation) -> None:
    found = run.json("bm25", "citeray", "--answers")
    gold = read_gold(run.gold)
    for system in found["systems"]:
        scores = score_run(gold, read_run(run.output / f"{system['name']}.json", gold))
        expected = intervals(scores)
        shared = set(system["measures"]) & set(expected)
        assert {"documents MAP", "snippets F1", "factoid MRR", "yesno macro F1"} <= shared
        for name in shared:
            interval = system["measures"][name]
            assert Interval(**interval) == expected[name]


def test_differences_are_paired_and_from_the_first_system(run: Ablation) -> None:
    found = run.json("hybrid", "bm25")
    gold = read_gold(run.gold)
    one, other = (
        score_run(gold, read_run(run.output / f"{name}.json", gold)) for name in ("bm25", "hybrid")
    )
    first, second = found["systems"]
    assert first["differences"] == {}
    difference = second["differences"]["documents MAP"]
    assert difference.pop("verdict") == "no difference shown"
    assert Interval(**difference) == differences(one, other)["documents MAP"]


def test_a_cutoff_has_the_first_k_documents_alone(run: Ablation) -> None:
    """BM25 finds of q1's two documents, 2 and 1, only the first."""
    cutoffs = {row["k"]: row for row in run.json("bm25", "--k", "1", "--k", "20")["cutoffs"]}
    assert set(cutoffs) == {1, 20}
    # Over q3, q1 and q2: 1 of 1, 1 of 2, 1 of 1.
    recall = cutoffs[1]["measures"]["documents recall"]["value"]
    assert recall == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert cutoffs[1]["measures"]["documents MAP"]["value"] == 1.0
    # "What does imatinib inhibit?" also finds warfarin, which inhibits too.
    assert cutoffs[20]["measures"]["documents precision"]["value"] < 1.0


def test_beyond_ten_snippets_there_are_no_numbers(run: Ablation) -> None:
    first, second = run.json("bm25", "--k", "10", "--k", "11")["cutoffs"]
    assert "snippets recall" in first["measures"]
    assert "snippets recall" not in second["measures"]


def test_latency_is_that_of_the_retrieval_stages_alone(tmp_path: Path) -> None:
    run = Run(Plan(load_system("bm25"), 10, False), tmp_path / "bm25.jsonl", {})
    timings: list[dict[str, float]] = [
        {"encode": 1.0, "retrieve": 2.0, "fetch": 0.5, "snippets": 40.0, "write": 900.0},
        {"expand": 1.0, "statistics": 2.0, "rerank": 30.0},
    ]
    run.replies = {str(n): {"timings_ms": t} for n, t in enumerate(timings)}
    assert run.latencies() == [3.5, 33.0]


def test_mean_and_median_latency_are_printed(run: Ablation) -> None:
    run.text("bm25")
    record = run.output / "bm25.jsonl"
    head, *lines = map(json.loads, record.read_text(encoding="utf-8").splitlines())
    for line, ms in zip(lines, (1.0, 2.0, 6.0), strict=True):
        line["timings_ms"] = {"retrieve": ms}
    record.write_text("".join(json.dumps(x) + "\n" for x in (head, *lines)), encoding="utf-8")
    (system,) = run.json("bm25")["systems"]
    assert (system["latency_mean"], system["latency_median"]) == (3.0, 2.0)


def test_each_question_is_asked_once_after_one_to_warm_up(
    run: Ablation, service: FlakyService
) -> None:
    run.text("bm25")
    assert service.ids() == ["q3", "q3", "q1", "q2"]


def test_a_run_that_is_complete_needs_no_graph(run: Ablation, service: FlakyService) -> None:
    found = run.json("bm25", "hybrid")
    service.asked.clear()
    run.port = free_port()
    assert run.json("bm25", "hybrid") == found
    assert service.asked == []


def test_an_interrupted_run_goes_on_where_it_stopped(run: Ablation, service: FlakyService) -> None:
    service.lost = ("q2",)
    with pytest.raises(CiteRayError, match="q2 is lost"):
        run.text("bm25")
    assert not (run.output / "bm25.json").exists()
    service.lost = ()
    service.asked.clear()
    run.text("bm25")
    assert set(service.ids()) == {"q2"}
    entries = json.loads((run.output / "bm25.json").read_text())["questions"]
    assert [entry["id"] for entry in entries] == ["q3", "q1", "q2"]


def test_a_line_that_was_cut_by_a_kill_is_asked_again(run: Ablation, service: FlakyService) -> None:
    found = run.json("bm25")
    record = run.output / "bm25.jsonl"
    record.write_bytes(record.read_bytes()[:-30])
    service.asked.clear()
    again = run.json("bm25")
    assert set(service.ids()) == {"q2"}
    assert again["systems"][0]["measures"] == found["systems"][0]["measures"]
    assert len(record.read_text(encoding="utf-8").splitlines()) == 4


def test_a_head_that_was_cut_starts_the_run_anew(run: Ablation, service: FlakyService) -> None:
    run.output.mkdir()
    (run.output / "bm25.jsonl").write_text('{"run": {"pre')
    run.text("bm25")
    assert set(service.ids()) == {"q3", "q1", "q2"}


@pytest.mark.parametrize("text", ["[]\n", "7\n", '{"run": 3}\n', "hello\n", '{"run": {}}\n[]\n'])
def test_a_record_that_is_none_is_refused_by_name(run: Ablation, text: str) -> None:
    run.output.mkdir()
    (run.output / "bm25.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"bm25\.jsonl: is no record of a run"):
        run.text("bm25")


def test_another_preset_under_the_same_name_is_refused(run: Ablation) -> None:
    run.text("bm25")
    system = load_system("bm25")
    changed = system.model_copy(update={"expand": True})
    other = Plan(changed, 10, False)
    settings = load_settings(overrides=["llm.kind=none"])
    key = run_key(other, settings, run.questions, run.gold)
    with pytest.raises(InputError, match=r"bm25\.jsonl: holds replies of another run \(preset was"):
        open_run(run.output, other, key)


def test_another_description_of_a_preset_is_no_other_preset(run: Ablation) -> None:
    plan = Plan(load_system("bm25"), 10, False)
    renamed = replace(plan, system=plan.system.model_copy(update={"about": "Better words."}))
    keys = [run_key(p, SETTINGS, run.questions, run.gold) for p in (plan, renamed)]
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--k", "20"], r"\(k was 10, is 20\)"),
        (["--answers"], r"\(answers was False, is True\)"),
        (["--set", "index.path=elsewhere"], r"\(settings was \w+, is \w+\)"),
    ],
)
def test_what_another_run_was_made_with_is_named(
    run: Ablation, arguments: list[str], words: str
) -> None:
    run.text("bm25")
    with pytest.raises(InputError, match=words):
        run.text("bm25", *arguments)


def test_other_questions_in_the_same_file_are_refused(run: Ablation) -> None:
    run.text("bm25")
    run.write(run.questions, ROWS[:2])
    with pytest.raises(InputError, match="questions was"):
        run.text("bm25")


def test_better_gold_needs_no_new_run(run: Ablation, service: FlakyService) -> None:
    run.text("bm25")
    service.asked.clear()
    run.gold = run.write(run.folder / "gold.json", [*ROWS[:2], {**ROWS[2], "documents": ["x"]}])
    assert run.json("bm25")["systems"][0]["measures"]["documents MAP"]["value"] < 1.0
    assert service.asked == []


def test_another_index_version_within_a_run_is_refused(
    run: Ablation, service: FlakyService
) -> None:
    service.lost = ("q2",)
    with pytest.raises(CiteRayError):
        run.text("bm25")
    service.lost, service.version = (), "v000002"
    with pytest.raises(InputError, match=r"version v000001, the index is now v000002"):
        run.text("bm25")


def test_runs_over_two_index_versions_are_not_compared(
    run: Ablation, service: FlakyService
) -> None:
    run.text("bm25")
    service.version = "v000002"
    with pytest.raises(InputError, match=r"bm25\.jsonl v000001, .*hybrid\.jsonl v000002"):
        run.text("bm25", "hybrid")


def test_lost_stages_are_counted_and_told(tmp_path: Path) -> None:
    with serving(create_api(SmallService(tmp_path / "i", broken=("rerank",)), "citeray")) as port:
        found = Ablation(tmp_path, port).text("citeray")
    assert "citeray: 3 of 3 questions: rerank: failed, first-stage order kept" in found


def test_the_progress_is_told_on_standard_error(run: Ablation) -> None:
    run.text("bm25")
    assert "bm25: answered 3 of 3, about 0 s left" in run.log


def test_the_tables_show_values_intervals_and_verdicts(run: Ablation) -> None:
    """BM25 finds 1, 1/2 and 1 of the gold; hybrid, in so small an index, all of it."""
    shown = run.text("bm25", "hybrid", "--seeds", "3,4")
    assert "3 questions, index v000001, 95% bootstrap intervals (seed 3, 4)" in shown
    assert "0.5000 to 1.0000" in shown
    assert "no difference shown" in shown
    assert "Means and paired differences from bm25" in shown
    assert "k = 10" in shown
    assert "Lost at each stage" not in shown


def test_a_system_is_run_once_however_often_it_is_named(run: Ablation) -> None:
    assert [s["name"] for s in run.json("bm25", "bm25")["systems"]] == ["bm25"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch"], "unknown system 'nosuch'; there are: bm25"),
        (["bm25", "--oracle", "luck"], "--oracle luck: unknown; there are: retrieve"),
    ],
)
def test_an_unknown_name_is_refused_before_anything_is_written(
    run: Ablation, arguments: list[str], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        run.text(*arguments)
    assert not run.output.exists()


def test_questions_without_gold_are_refused_by_count_and_name(
    run: Ablation, service: FlakyService
) -> None:
    run.gold = run.write(run.folder / "gold.json", ROWS[:1])
    with pytest.raises(InputError, match=r"gold\.json: lacks 2 of the 3 questions .* 'q1'"):
        run.text("bm25")
    assert service.asked == []


def test_no_question_at_all_is_refused(run: Ablation) -> None:
    run.questions = run.write(run.folder / "none.json", [])
    with pytest.raises(InputError, match=r"none\.json: holds no question to run"):
        run.text("bm25")


def test_a_folder_that_cannot_be_made_is_named(run: Ablation) -> None:
    run.output = run.questions
    with pytest.raises(InputError, match=r"--output .*questions\.json: cannot be made"):
        run.text("bm25")


@pytest.mark.parametrize("name", ["bm25.jsonl", "bm25.json"])
def test_a_file_that_cannot_be_written_is_named(run: Ablation, name: str) -> None:
    (run.output / name).mkdir(parents=True)
    with pytest.raises(InputError, match=r"bm25\.json.*: cannot be written: "):
        run.text("bm25")


def test_an_oracle_needs_gold_that_names_pmids(run: Ablation) -> None:
    run.gold = run.write(run.folder / "gold.json", [*ROWS[:2], {**ROWS[2], "documents": ["x"]}])
    with pytest.raises(InputError, match="document 'x' does not end in a PMID"):
        run.text("bm25", "--oracle", "retrieve")
    assert not run.output.exists()


def test_an_oracle_cannot_write_with_a_model_that_runs_elsewhere(run: Ablation) -> None:
    with pytest.raises(InputError, match=r"--set llm\.kind=url"):
        run.text("bm25", "--oracle", "evidence", "--answers", "--set", "llm.kind=vllm")


def test_answers_are_run_again_for_each_k_that_is_not_the_presets() -> None:
    names = [plan.name for plan in make_plans(["bm25"], [5, 10], True, ["retrieve"])]
    assert names == ["bm25", "bm25.evidence-5", "bm25.oracle-retrieve"]


def test_rankings_are_not_run_again_for_any_k() -> None:
    (plan,) = make_plans(["bm25"], [5, 20], False, [])
    assert (plan.name, plan.k) == ("bm25", 20)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides for an index and an encoder that this process can load."""
    folder = tmp_path_factory.mktemp("local")
    model = make_tiny_encoder(folder)
    encoder = Encoder(model, device="cpu", max_tokens=64)
    index = folder / "index"
    manifest = make_index(index, CORPUS, encode=encoder.encode)
    vocabularies = [index / vocabulary_file(version) for version in ("v000001", "v000002")]
    shutil.copy(*vocabularies)
    entry = manifest.encoder.model_copy(update={"sha256": checksum(model)})
    publish(index, manifest.model_copy(update={"version": "v000002", "encoder": entry}))
    values = [f"index.path={index}", f"encoder.model=file:{model}", "encoder.max_tokens=64"]
    return [word for value in values for word in ("--set", value)]


def test_without_an_endpoint_presets_run_in_this_process(tmp_path: Path, local: list[str]) -> None:
    run = Ablation(tmp_path, free_port())
    found = run.json("bm25", *local)
    assert "loading the graph here" in run.log
    assert found["systems"][0]["measures"]["documents MRR@10"]["value"] == 1.0


def test_oracles_show_what_is_lost_at_each_stage(tmp_path: Path, local: list[str]) -> None:
    """Of q1's documents 2 and 1 BM25 finds one: a recall of 1/2 in one of three questions."""
    run = Ablation(tmp_path, free_port())
    oracles = [word for name in ("retrieve", "evidence") for word in ("--oracle", name)]
    losses = run.json("bm25", *oracles, *local)["losses"]
    found = {(loss["oracle"], loss["measure"]): loss for loss in losses}
    recall = found["retrieve", "documents recall"]
    assert (recall["without"], recall["with_oracle"]) == (pytest.approx(2.5 / 3), 1.0)
    assert recall["lost"]["value"] == pytest.approx(0.5 / 3)
    assert recall["lost"]["verdict"] == "no difference shown"
    assert found["evidence", "snippets precision"]["with_oracle"] == 1.0
    assert not any(o == "evidence" and m.startswith("documents") for o, m in found)


def test_the_losses_are_printed(tmp_path: Path, local: list[str]) -> None:
    shown = Ablation(tmp_path, free_port()).text("bm25", "--oracle", "rerank", *local)
    assert "Lost at each stage" in shown


def test_with_answers_each_k_is_what_the_writer_saw(tmp_path: Path, local: list[str]) -> None:
    run = Ablation(tmp_path, free_port())
    rows = run.json("bm25", "--answers", "--k", "1", "--k", "3", *local)["cutoffs"]
    gold = read_gold(run.gold)
    for k, found in zip((1, 3), rows, strict=True):
        scores = score_run(gold, read_run(run.output / f"bm25.evidence-{k}.json", gold))
        assert found["measures"]["ROUGE-2 F1"]["value"] == scores.values()["ROUGE-2 F1"]


def test_oracles_are_refused_where_the_gold_has_changed(tmp_path: Path, local: list[str]) -> None:
    run = Ablation(tmp_path, free_port())
    run.text("bm25", "--oracle", "evidence", *local)
    run.gold = run.write(tmp_path / "gold.json", [*ROWS[:2], {**ROWS[2], "documents": ["9"]}])
    with pytest.raises(InputError, match=r"oracle-evidence\.jsonl: .*gold was"):
        run.text("bm25", "--oracle", "evidence", *local)


def test_the_widest_interval_of_all_seeds_is_shown() -> None:
    one = {"MAP": Interval(0.5, 0.3, 0.6), "none": Interval(math.nan, math.nan, math.nan)}
    other = {"MAP": Interval(0.5, 0.4, 0.7), "none": Interval(math.nan, math.nan, math.nan)}
    assert covering([one, other]) == {"MAP": Interval(0.5, 0.3, 0.7)}


def test_ranking_measures_by_hand() -> None:
    """Gold a, b, c; found x a b: relevant at ranks 2 and 3."""
    found = score_ranking(["a", "b", "c"], ["x", "a", "b", "y"], 3)
    assert found["precision"] == 2 / 3
    assert found["recall"] == 2 / 3
    assert found["MAP"] == pytest.approx((1 / 2 + 2 / 3) / 3)
    assert found["MRR"] == 1 / 2
    gain = 1 / math.log2(3) + 1 / math.log2(4)
    assert found["nDCG"] == pytest.approx(gain / (1 + gain))


def test_average_precision_at_k_is_over_what_k_places_can_hold() -> None:
    assert score_ranking(["a", "b", "c"], ["a", "b"], 2)["MAP"] == 1.0


rankings = st.tuples(
    st.permutations([str(n) for n in range(15)]),
    st.sets(st.integers(0, 20).map(str), min_size=1).map(sorted),
)


@given(rankings)
def test_at_ten_the_measures_are_the_official_ones(case: tuple[list[str], list[str]]) -> None:
    ranked, gold = case
    precision, recall, _, average = score_documents(gold, ranked)
    found = score_ranking(gold, ranked, 10)
    assert (found["precision"], found["recall"]) == (precision, recall)
    assert found["MAP"] == pytest.approx(average)


@given(rankings, st.integers(1, 15))
def test_ndcg_is_scikit_learns(case: tuple[list[str], list[str]], k: int) -> None:
    ranked, wanted = case
    gold = [document for document in wanted if document in ranked] or [ranked[-1]]
    truth = np.asarray([[document in gold for document in ranked]], float)
    scores = -np.arange(len(ranked), dtype=float)[None]
    found = score_ranking(gold, ranked, k)["nDCG"]
    assert found == pytest.approx(ndcg_score(truth, scores, k=k))


@given(rankings, st.integers(1, 14))
def test_ranking_measures_have_bounds_and_recall_grows(
    case: tuple[list[str], list[str]], k: int
) -> None:
    ranked, gold = case
    found = score_ranking(gold, ranked, k)
    assert all(0 <= value <= 1 + 1e-9 for value in found.values())
    assert score_ranking(gold, ranked, k + 1)["recall"] >= found["recall"]


def test_a_measure_that_one_system_lacks_is_a_dash(tmp_path: Path) -> None:
    """A run whose factoid has no gold would lack it; here the second has no answers."""
    gold_file = tmp_path / "gold.json"
    gold_file.write_text(json.dumps({"questions": ROWS}), encoding="utf-8")
    runs = [
        with_entries(tmp_path, "bm25", [{"exact_answer": "yes"}, {"exact_answer": [["a"]]}, {}]),
        with_entries(tmp_path, "dense", [{}, {}, {}]),
    ]
    out = Console(file=io.StringIO(), width=200)
    print_tables(out, tabulate_runs(runs, read_gold(gold_file), [10], [0]))
    assert isinstance(out.file, io.StringIO)
    cells = next(x for x in out.file.getvalue().splitlines() if "yesno accuracy" in x)
    assert cells.split("│")[3].strip() == "-"


def with_entries(folder: Path, name: str, answers: list[dict[str, Any]]) -> Run:
    """A run that found the gold documents, complete as if it had been asked."""
    plan = Plan(load_system(name), 10, True)
    run = Run(plan, folder / f"{name}.jsonl", {}, "v000001")
    for question, answer in zip(ROWS, answers, strict=True):
        entry = {key: question[key] for key in ("id", "type", "body", "documents")} | answer
        ranked = [int(document.rpartition("/")[2]) for document in question["documents"]]
        reply = {"entry": entry, "ranked": ranked, "timings_ms": {}, "degraded": []}
        run.replies[question["id"]] = reply

    @contextmanager
    def closed() -> Iterator[Ask]:
        raise StageLostError("a complete run was asked")
        yield

    questions = [Question(question["id"], question["body"]) for question in ROWS]
    complete_runs([run], questions, closed, Console(file=io.StringIO()))
    return run


def test_a_run_between_two_lines_of_progress_says_nothing(tmp_path: Path) -> None:
    """Lines come every five seconds, and at the end."""
    log = io.StringIO()
    service = SmallService(tmp_path / "index")
    plan = Plan(load_system("bm25"), 10, False)

    @contextmanager
    def graph() -> Iterator[Ask]:
        yield lambda question, plan: asyncio.run(
            service.search(question, plan.system, plan.k, True)
        )

    questions = [Question(question["id"], question["body"], question["type"]) for question in ROWS]
    complete_runs([open_run(tmp_path, plan, {})], questions, graph, Console(file=log))
    assert log.getvalue().splitlines() == ["bm25: answered 3 of 3, about 0 s left"]
