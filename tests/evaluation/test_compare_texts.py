"""BLEU compared with hand calculations, BERTScore with the bert-score program."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.errors import InputError
from evaluation.answers.compare_texts import BertScorer, bleu, score_texts
from tests.tiny_models import MAX_TOKENS, make_tiny_encoder

pytestmark = pytest.mark.model


def test_bleu_matches_hand_calculation(subtests: pytest.Subtests) -> None:
    gold = "Spain has the highest burden of Chagas disease in Europe."
    for said, references, expected in [
        # Of "a b c": words 2/3, pairs 1/2, triples 0/1, smoothed to 1/2. With three words for four,
        # the brevity penalty is exp(1 - 4/3).
        ("a b c", ["a b d e"], math.exp(1 - 4 / 3) * (2 / 3 * 1 / 2 * 0.5 / 1) ** (1 / 3)),
        # N-grams of any reference count: words 4/4, pairs "a b" and "c d" of 3, triples 0/2
        # smoothed to (1/2)/2, fours 0/1 to (1/4)/1.
        ("a b c d", ["a b x x", "x x c d"], (1 * 2 / 3 * 1 / 4 * 1 / 4) ** (1 / 4)),
        # A word counts at most as often as in the reference: words 1/2, pairs 0/1, smoothed.
        ("a a", ["a b"], (1 / 2 * 1 / 2) ** (1 / 2)),
        ("ankylosing spondylitis", ["ankylosing spondylitis"], 1),
        # As in paper 000.
        ("African trypanosomiasis", [gold], 0),
        ("", ["a b"], 0),
        ("a b", [""], 0),
    ]:
        with subtests.test(said=said, references=references):
            assert bleu(said, references) == pytest.approx(100 * expected)


@pytest.mark.parametrize("references", [[], "a string"])
def test_text_scores_require_a_list_of_references(references: Any, scorer: BertScorer) -> None:
    with pytest.raises(InputError, match=r"text 'a b': it has no list of references"):
        bleu("a b", references)
    with pytest.raises(InputError, match=r"question '1': it has no list"):
        score_texts({"0": "a", "1": "b"}, {"0": ["a"], "1": references})
    with pytest.raises(InputError, match=r"question '1': it has no list"):
        score_texts({"1": "a"}, {})
    with pytest.raises(InputError, match="text 1: it has no list of references"):
        scorer.score(["fever", "blood"], [["fever"], references])


def test_text_scores_average_bleu() -> None:
    said = {"2": "a x c d", "1": "a b c d"}
    references = {"1": ["a b c d"], "2": ["a b c d", "a b"], "3": ["a"]}
    scores = score_texts(said, references)
    single = bleu(said["2"], references["2"])
    assert scores.ids == ("1", "2")
    assert scores.missing == ("3",)
    assert scores.by_question()["2"]["BLEU"] == single
    assert scores.values()["BLEU"] == pytest.approx((100 + single) / 2)
    # Without questions, there are no scores.
    nothing = score_texts({}, {"1": ["a"]})
    assert nothing.missing == ("1",)
    assert all(map(math.isnan, nothing.values().values()))


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # With this name, bert-score's own loader would take the model for a T5.
    folder = tmp_path_factory.mktemp("not-a-t5")
    make_tiny_encoder(folder)
    return folder / "base"


@pytest.fixture(scope="module")
def scorer(model_dir: Path) -> BertScorer:
    return BertScorer(model_dir)


SAID = ["aspirin inhibits the protein", "aspirin treats fever in the study"]
REFERENCES = ["aspirin reduces fever", "the drug causes bleeding, and aspirin reduces fever"]


def test_bertscore_matches_the_bert_score_program(
    model_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from bert_score import BERTScorer

    shutil.copytree(model_dir, tmp_path / "model")
    program = BERTScorer(model_type=str(tmp_path / "model"), num_layers=2, device="cpu")
    expected = np.stack([part.numpy() for part in program.score(SAID, REFERENCES)], axis=1)
    capsys.readouterr()
    found = BertScorer(model_dir).score(SAID, [[reference] for reference in REFERENCES])
    assert np.allclose(found, expected, atol=1e-5)
    assert capsys.readouterr().err == ""


def test_bertscore_uses_the_reference_with_the_best_f1(scorer: BertScorer) -> None:
    apart = [scorer.score([SAID[1]], [[reference]])[0] for reference in REFERENCES]
    [together] = scorer.score([SAID[1]], [REFERENCES])
    best = max(apart, key=lambda triple: triple[2])
    assert together == pytest.approx(best, abs=1e-5)
    assert scorer.score([SAID[1]], [REFERENCES[::-1]])[0] == pytest.approx(best, abs=1e-5)


def test_bertscore_of_empty_text_is_zero(scorer: BertScorer) -> None:
    found = scorer.score(["", SAID[0], SAID[0]], [["fever"], [" "], ["", SAID[0]]])
    assert scorer.score([], []) == []
    assert found[:2] == [(0, 0, 0), (0, 0, 0)]
    assert found[2] == pytest.approx((1, 1, 1), abs=1e-5)


def test_bertscore_truncates_without_a_tokeniser_limit(model_dir: Path, tmp_path: Path) -> None:
    limit = f'"model_max_length": {MAX_TOKENS}'
    none = f'"x": {MAX_TOKENS}'
    folder = copied(model_dir, tmp_path / "model", "tokenizer_config.json", limit, none)
    long = "fever " * 3 * MAX_TOKENS
    [(_, _, f1)] = BertScorer(folder).score([long], [[long + "bleeding"]])
    assert f1 == pytest.approx(1, abs=1e-5)


def copied(model_dir: Path, folder: Path, file: str, old: str, new: str) -> Path:
    """Copy the model, replacing `old` by `new` in `file`."""
    shutil.copytree(model_dir, folder)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    return folder


def test_bertscore_refuses_a_folder_without_all_weights(model_dir: Path, tmp_path: Path) -> None:
    key = '"num_hidden_layers": '
    folder = copied(model_dir, tmp_path / "model", "config.json", f"{key}2", f"{key}3")
    with pytest.raises(InputError, match=r"lacks weights of a bert model \(encoder.layer.2"):
        BertScorer(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="does not load as a language model"):
        BertScorer(folder)
    with pytest.raises(InputError, match=r"is not a model's folder \(it has no config.json\)"):
        BertScorer(tmp_path)
