"""The Serve graph on a real Ray, over HTTP, as `citeray serve` starts it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import httpx
import psutil
import pytest

from cluster.ray.session import NICENESS
from cluster.settings.presets import system_names
from tests.commands.run_here import run_here
from tests.end_to_end.command import BIN, start, until_stopped, with_settings
from tests.end_to_end.conftest import SampleIndex
from tests.end_to_end.running_service import await_ready, own_models
from tests.serve.eutils_server import EUtils, eutils
from tests.serve.http_server import free_port
from tests.tiny_models import CACHED_ROWS, make_tiny_reader

pytestmark = pytest.mark.ray


@dataclass(frozen=True)
class Served:
    url: str
    process: subprocess.Popen
    settings: list[str]
    questions: Path
    states: list[int]

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run `citeray` with the settings of the service; return its exit code and output."""
        return run_here(*with_settings(list(words), self.settings))


@pytest.fixture(scope="module")
def pubmed() -> Iterator[EUtils]:
    """E-utilities that find two citations of the sample and one PMID that is not in it."""
    entered = dict.fromkeys((90000034, 90000001, 77), date(2020, 1, 1))
    with eutils(EUtils(entered)) as server:
        yield server


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, pubmed: EUtils, sample_index: SampleIndex
) -> Iterator[Served]:
    """`citeray serve` over the sample corpus, without a language model."""
    folder = tmp_path_factory.mktemp("served")
    port = free_port()
    settings = [*sample_index.settings, f"serve.port={port}"]
    settings += [f"entrez.base_url={pubmed.url}", f"entrez.cache={folder / 'entrez'}"]
    # The conversion of this reader is not cached, so that loading takes long enough to be observed.
    settings += [f"reader.model=file:{make_tiny_reader(folder, rows=CACHED_ROWS + 1)}"]
    process = start(
        ["env", f"--unset={NICENESS}", *with_settings([str(BIN / "citeray"), "serve"], settings)],
        own_models(folder / "models"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell that runs the tests in the background may ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    url = f"http://127.0.0.1:{port}"
    asked = json.loads(sample_index.corpus.questions.read_text())["questions"][::5]
    questions = folder / "questions.json"
    questions.write_text(json.dumps({"questions": asked}))
    with until_stopped(process):
        yield Served(url, process, settings, questions, await_ready(url, process))


def test_graph_answers_503_until_it_is_ready(served: Served) -> None:
    # Before it knows any route, Ray's proxy answers 404.
    waiting = [state for state in served.states[:-1] if state != 404]
    assert waiting
    assert set(waiting) == {503}


def test_every_sentence_cites_pmids_of_the_evidence(served: Served) -> None:
    question = "Which drugs can cause haemolysis in G6PD deficiency?"
    request = {"question": question, "type": "summary", "max_wrong": 1}
    answer = httpx.post(f"{served.url}/v1/answer", json=request, timeout=60).json()
    evidence = {e["passage"]["pmid"] for e in answer["evidence"]}
    assert answer["ideal"]
    for sentence in answer["ideal"]:
        assert 1 <= len(sentence["pmids"]) <= 3
        assert set(sentence["pmids"]) <= evidence
    assert (answer["origin"], answer["degraded"]) == ("extractive", [])
    assert answer["coverage"] == "2/2"


def test_every_preset_answers_at_the_endpoint(served: Served, subtests: pytest.Subtests) -> None:
    for system in system_names():
        with subtests.test(system=system):
            request = {"question": "Does metformin activate AMPK?", "system": system}
            answer = httpx.post(f"{served.url}/v1/answer", json=request, timeout=90).json()
            assert answer["citations"], answer["degraded"]
            assert (answer["system"], answer["coverage"]) == (system, "2/2")
            lost = {loss.split(":")[0] for loss in answer["degraded"]}
            assert lost <= {"llm", "rewrite", "self-check", "rerank", "pubmed"}


@pytest.mark.parametrize("system", ["citeray", "aqams2"])
def test_answer_uses_the_evidence_given_with_the_question(served: Served, system: str) -> None:
    said = "Metformin activates AMPK in human muscle."
    held = {"pmid": 90000034, "section": "abstract", "begin": 0, "end": 41, "text": said}
    passages = [held, {**held, "pmid": 77}]
    question = "Does metformin activate AMPK?"
    asked = {"question": question, "type": "yesno", "max_wrong": 1}
    request = {**asked, "system": system, "evidence": passages}
    answer = httpx.post(f"{served.url}/v1/answer", json=request, timeout=60).json()
    assert [e["passage"] for e in answer["evidence"]] == passages
    assert [bool(e["title"]) for e in answer["evidence"]] == [True, False]
    assert [(s["text"], sorted(s["pmids"])) for s in answer["ideal"]] == [(said, [77, 90000034])]
    assert "evidence: given PMIDs not found in this index" in answer["degraded"]


def test_pmids_found_in_pubmed_are_read_from_the_index(served: Served) -> None:
    request = {"question": "Does metformin activate AMPK?", "system": "sinai"}
    found = httpx.post(f"{served.url}/v1/search", json=request, timeout=60).json()
    assert sorted(c["pmid"] for c in found["citations"]) == [90000001, 90000034]
    assert "pubmed: 1 of 3 PMIDs are not in this index" in found["degraded"]


def test_citation_is_served_and_a_deleted_one_is_404(served: Served) -> None:
    found = httpx.get(f"{served.url}/v1/citations/90000034", timeout=30)
    assert (found.status_code, found.json()["version"]) == (200, 2)
    assert httpx.get(f"{served.url}/v1/citations/90000028", timeout=30).status_code == 404


def test_commands_use_the_running_endpoint(served: Served, tmp_path: Path) -> None:
    code, stdout, stderr = served.run("ask", "Does metformin activate AMPK?")
    assert code == 0, stderr
    assert "loading the index" not in stderr
    assert "90000" in stdout
    _, stdout, _ = served.run("search", "metformin", "--json")
    assert len(json.loads(stdout)["citations"]) == 10
    every = tmp_path / "every.nbib"
    options = ["--boolean", "-o", str(every), "--format", "nbib", "--json"]
    code, stdout, stderr = served.run("search", "metformin[tiab] NOT mice[tiab]", *options)
    assert code == 0, stderr
    assert every.read_text().count("PMID- ") == json.loads(stdout)["total"] > 0
    output = tmp_path / "run.json"
    options = ["-o", str(output), "--json"]
    code, stdout, stderr = served.run("answer", str(served.questions), *options)
    assert code == 0, stderr
    assert json.loads(stdout)["questions"] == 8
    entries = json.loads(output.read_text())["questions"]
    assert all(entry["documents"] and entry["ideal_answer"] for entry in entries)


def test_batch_answers_from_the_snippets_in_its_file(served: Served, tmp_path: Path) -> None:
    output = tmp_path / "run.json"
    options = ["-o", str(output), "--json", "--evidence", "given"]
    code, stdout, stderr = served.run("answer", str(served.questions), *options)
    assert code == 0, stderr
    assert not any(loss.startswith("evidence") for loss in json.loads(stdout)["degraded"])
    asked = json.loads(served.questions.read_text())["questions"]
    answered = json.loads(output.read_text())["questions"]
    for question, entry in zip(asked, answered, strict=True):
        assert set(entry["documents"]) <= {s["document"] for s in question["snippets"]}
        assert entry["ideal_answer"]


def test_replicas_run_at_the_priority_of_the_command(served: Served) -> None:
    command = psutil.Process(served.process.pid)
    stages = [p for p in command.children(recursive=True) if "ServeReplica" in p.cmdline()[0]]
    assert len(stages) > 3
    assert {stage.nice() for stage in stages} == {command.nice()}


def test_second_serve_on_the_same_port_is_refused(served: Served) -> None:
    code, _, stderr = served.run("serve")
    assert code == 2
    (line,) = stderr.splitlines()
    assert "perhaps `citeray serve`, listens there" in line
    assert httpx.get(f"{served.url}/readyz", timeout=30).status_code == 200


def test_interrupt_stops_the_whole_graph_without_a_traceback(served: Served) -> None:
    """Runs last because it stops the endpoint. SIGTERM is tested in test_service."""
    served.process.send_signal(signal.SIGINT)
    output, _ = served.process.communicate(timeout=180)
    assert served.process.returncode == 130, output
    assert "Traceback" not in output
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"{served.url}/healthz", timeout=5)
