"""`citeray demo`, as README's first command runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.command import BIN, run, with_settings
from tests.serve.http_server import free_port

# Not marked `ray`, because all tests with that marker share one worker and the demo can run beside
# them.
pytestmark = [pytest.mark.process, pytest.mark.nightly]


@pytest.mark.durability
@pytest.mark.timeout(1700)
def test_demo_prints_answers_with_citations_from_its_corpus(tmp_path: Path) -> None:
    """With the real encoder and the real language model, as `make demo` runs it."""
    command = [str(BIN / "citeray"), "demo", "--json", "--keep", str(tmp_path)]
    # On a busy machine the model needs longer than a reader would wait.
    patient = [f"serve.{stage}.deadline_s=240" for stage in ("writer", "llm")]
    options = [f"serve.port={free_port()}", *patient, "serve.request_deadline_s=300"]
    done = run(with_settings(command, options), timeout_s=1100)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert [a["question"]["type"] for a in answers] == ["yesno", "factoid", "summary", "summary"]
    for answer in answers:
        assert answer["ideal"]
        assert all(90_000_001 <= p <= 90_000_400 for s in answer["ideal"] for p in s["pmids"])
        assert answer["verdict"] == "answered"
        assert not answer["degraded"]
    assert [answer["exact"] for answer in answers[:2]] == ["no", [["T790M"]]]
    safety, resistance, antidote, written = (answer["ideal"][0]["text"] for answer in answers)
    assert "excess of risk" in safety
    assert "T790M" in resistance
    assert "Idarucizumab undoes dabigatran" in antidote
    # No supporting passage may be marked as contradicting the answer.
    assert not any(sentence["contradicted"] for sentence in answers[0]["ideal"])
    origins = [answer["origin"] for answer in answers]
    assert origins == ["extractive", "extractive", "extractive", "generated"]
    assert "idarucizumab" in written.lower()


def test_demo_shows_the_error_of_a_failed_build(tmp_path: Path) -> None:
    """The command deploys nothing and prints no second error."""
    command = [str(BIN / "citeray"), "demo", "--keep", str(tmp_path)]
    options = [f"serve.port={free_port()}", "llm.kind=none", "encoder.model=file:/no/such/model"]
    done = run(with_settings(command, options), timeout_s=300)
    assert done.returncode == 1
    assert "/no/such/model" in done.stderr
    assert "citeray index failed" in done.stderr
    assert "Traceback" not in done.stderr
