"""`citeray reproduce` builds the index, runs two systems and fills the tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from pipelines.sample.write_sample import write_sample
from tests.end_to_end.command import BIN, run, with_settings
from tests.serve.corpus_pubmed import CorpusPubMed
from tests.serve.eutils_server import eutils

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

QUESTIONS = 20


@pytest.mark.timeout(1500)
def test_reproduce_runs_a_paper_from_its_corpus_to_its_tables(tmp_path: Path) -> None:
    """With the laptop's models, including the language model, and a local E-utilities server."""
    sample = write_sample(tmp_path / "sample")
    asked = json.loads(sample.questions.read_text())["questions"][:QUESTIONS]
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps({"questions": asked}), encoding="utf-8")
    command = [str(BIN / "citeray"), "reproduce", "001", "--scale", "small", "--json"]
    command += ["--questions", str(questions), "--gold", str(questions)]
    command += ["--corpus", str(tmp_path / "sample"), "--output", str(tmp_path / "runs")]
    command += ["--concurrent", str(QUESTIONS)]
    records = {
        record.pmid: record
        for source in sample.sources
        for record in read_records(source)
        if isinstance(record, Citation)
    }
    with eutils(CorpusPubMed(citations=tuple(records.values()))) as pubmed:
        settings = [f"index.path={tmp_path / 'index'}", f"entrez.base_url={pubmed.url}"]
        done = run(with_settings(command, settings), timeout_s=1400)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    here = {t["name"]: t["rows"][-1]["here"] for t in found["tables"]}
    assert list(here) == ["Table 1", "Table 2", "Table 3", "Table 4", "Table 5"]
    assert here["Table 2"]["Yes/No Acc."]["value"] > 0.3
    assert here["Table 5"]["R-2 (F1)"]["value"] > 0
    told = found["degraded"]["aqams2"]
    assert not [loss for loss in told if loss.startswith("llm: failed")], told
    runs = sorted(path.name for path in (tmp_path / "runs").glob("*.json"))
    assert runs == ["aqams.json", "aqams2.json"]
