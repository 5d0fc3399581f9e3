"""Ideal answers compared as texts, and judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from cluster.errors import InputError
from tests.evaluation.evaluate_command.small_runs import (
    measures,
    question,
    run_evaluate,
    snippet,
    write,
)
from tests.evaluation.scripted_judge import ScriptedJudge
from tests.serve.http_server import serving
from tests.tiny_models import make_tiny_encoder


@pytest.mark.model
def test_bleu_and_bertscore_cover_ideal_and_exact_answers(
    tmp_path: Path, good: Path, gold: Path
) -> None:
    model = make_tiny_encoder(tmp_path / "tiny").parent / "base"
    found = measures(good, gold, "--bertscore", model)
    assert found["BLEU"] == 100
    assert found["BERTScore F1"] == pytest.approx(1, abs=1e-5)
    assert found["exact BERTScore F1"] == pytest.approx(1, abs=1e-5)
    assert "BERTScore F1" not in measures(good, gold, "--bleu")


def exact_bleu(tmp_path: Path, kind: str, gold: object, said: object) -> float:
    asked = write(tmp_path / "gold.json", question("1", kind, exact_answer=gold))
    run = write(tmp_path / "run.json", question("1", kind, exact_answer=said))
    return measures(run, asked, "--bleu")["exact BLEU"]


def test_bleu_of_exact_answer_compares_joined_names(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for kind, gold, said, bleu in [
        ("yesno", "yes", "yes", 100),
        ("yesno", "yes", "no", 0),
        # Only the first answer is compared, with each gold name.
        ("factoid", [["JC virus", "JCV"]], [["JCV"], ["JC virus"]], 100),
        ("factoid", [["JC virus"]], [["HIV"], ["JC virus"]], 0),
        # Words 2/3, pairs 1/2, triples 0/1, smoothed to a half.
        ("factoid", [["a b gliomas"]], [["a b glioma"]], 100 * (2 / 3 * 1 / 2 * 1 / 2) ** (1 / 3)),
        # A list is compared as one text, so a complete list is perfect.
        ("list", [["a", "x"], ["b"], ["c"]], [["a"], ["b"], ["c"]], 100),
        # No single gold name contains a pair of words.
        ("list", [["a"], ["b"], ["c"]], [["b"], ["a"]], 100 * (1 * 1 / 2) ** (1 / 2)),
    ]:
        with subtests.test(kind=kind, gold=gold):
            assert exact_bleu(tmp_path, kind, gold, said) == pytest.approx(bleu)


def test_missing_exact_answer_scores_zero_bleu(tmp_path: Path) -> None:
    asked = [question(n, "yesno", exact_answer="yes") for n in "12"]
    run = write(tmp_path / "run.json", asked[0], question("2", "yesno"))
    assert measures(run, write(tmp_path / "gold.json", *asked), "--bleu")["exact BLEU"] == 50


def test_unusable_options_are_refused(tmp_path: Path, good: Path, gold: Path) -> None:
    blank = write(tmp_path / "run.json", question("1", "yesno", "7"))
    with pytest.raises(InputError, match="no ideal answer to a question with a gold one"):
        run_evaluate(blank, gold, "--bleu")
    with pytest.raises(InputError, match="--judge needs --judge-model"):
        run_evaluate(good, gold, "--judge", "http://127.0.0.1:9/v1")
    with pytest.raises(InputError, match=r'--bertscore .*none: no such folder; .* or "encoder"'):
        run_evaluate(good, gold, "--bertscore", tmp_path / "none")


def judged(good: Path, gold: Path, tmp_path: Path, judge: ScriptedJudge) -> Result:
    encoder = make_tiny_encoder(tmp_path / "encoder")
    with serving(judge.app()) as port:
        return run_evaluate(
            good, gold, "--json", "--judge", f"http://127.0.0.1:{port}/v1", "--judge-model", "j",
            f"--set=encoder.model=file:{encoder}", "--set=encoder.sha256=",
        )  # fmt: skip


@pytest.mark.model
def test_ragas_measures_come_from_the_judge_at_the_url(tmp_path: Path, gold: Path) -> None:
    said = question(
        "1", "yesno", ideal_answer="A is true. B is false.", snippets=[snippet("7", 0, "useful")]
    )
    done = judged(write(tmp_path / "run.json", said), gold, tmp_path, ScriptedJudge())
    found = json.loads(done.stdout)
    # The script supports one of the answer's two statements, but not "Iron is stored".
    assert found["measures"]["faithfulness"]["value"] == 0.5
    assert found["measures"]["context precision"]["value"] == 1
    assert found["measures"]["context recall"]["value"] == 0
    assert -1 <= found["measures"]["answer relevancy"]["value"] <= 1
    assert "RAGAS's judge was right on 100% of cases with known verdicts" in found["notes"]
    assert "judged 1 of 1" in done.stderr


@pytest.mark.model
def test_weak_judge_is_noted(tmp_path: Path, good: Path, gold: Path) -> None:
    judge = ScriptedJudge()
    judge.wrong = 6
    notes = json.loads(judged(good, gold, tmp_path, judge).stdout)["notes"]
    assert any(n.startswith("weak judge: RAGAS's judge was right on 50% of") for n in notes)
