"""`citeray demo`, as README's first command runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.command import BIN, run, with_settings
from tests.serve.http_server import free_port

pytestmark = [pytest.mark.durability, pytest.mark.ray, pytest.mark.nightly]


@pytest.mark.timeout(1700)
def test_the_demo_prints_three_answers_with_citations_from_its_corpus(tmp_path: Path) -> None:
    """With the real encoder and the real language model, as `make demo` runs it."""
    port = free_port()
    command = [str(BIN / "citeray"), "demo", "--json", "--keep", str(tmp_path)]
    done = run(with_settings(command, [f"serve.port={port}"]), timeout_s=1100)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert [a["question"]["type"] for a in answers] == ["yesno", "factoid", "summary"]
    for answer in answers:
        assert answer["ideal"]
        assert all(90_000_001 <= p <= 90_000_400 for s in answer["ideal"] for p in s["pmids"])
        assert answer["verdict"] == "answered"
        assert not answer["degraded"]
    verdict, mutation, _ = (answer["exact"] for answer in answers)
    assert (verdict, mutation) == ("no", [["T790M"]])
    safety, resistance, antidote = (answer["ideal"][0]["text"] for answer in answers)
    assert "excess of risk" in safety
    assert "T790M" in resistance
    assert "Idarucizumab undoes dabigatran" in antidote
    # No passage that supports the answer is told as being against it.
    assert not any(sentence["contradicted"] for sentence in answers[0]["ideal"])
    question = (
        "Which EGFR mutation is the main cause of acquired resistance to gefitinib and erlotinib?"
    )
    _assert_that_the_language_model_writes(tmp_path / "index", question)


def _assert_that_the_language_model_writes(index: Path, question: str) -> None:
    command = [str(BIN / "citeray"), "ask", question, "--system", "citeray-model", "--json"]
    # Whatever the confidence: answers of the small model are seldom stated.
    command += ["--max-wrong", "1"]
    # On a busy machine the model needs longer than a reader would wait.
    patient = [f"serve.{stage}.deadline_s=240" for stage in ("writer", "llm")]
    settings = [f"index.path={index}", *patient, "serve.request_deadline_s=300"]
    done = run(with_settings(command, settings), timeout_s=500)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["origin"] == "generated"
    assert not [loss for loss in answer["degraded"] if loss.startswith("llm: failed")]


def test_a_demo_whose_build_fails_says_what_the_build_said(tmp_path: Path) -> None:
    """Nothing is deployed then, and stopping it is no second failure."""
    command = [str(BIN / "citeray"), "demo", "--keep", str(tmp_path)]
    options = [f"serve.port={free_port()}", "llm.kind=none", "encoder.model=file:/no/such/model"]
    done = run(with_settings(command, options), timeout_s=300)
    assert done.returncode == 1
    assert "/no/such/model" in done.stderr
    assert "citeray index failed" in done.stderr
    assert "Traceback" not in done.stderr
