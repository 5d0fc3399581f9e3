from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from cluster.errors import InputError
from serve.support.attribute_sentences import attribute
from serve.support.check_entailment import NliSupport, nli_labels
from tests.serve.answering import evidence
from tests.tiny_models import make_tiny_cross_encoder

pytestmark = pytest.mark.model

LABELS = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    folder = make_tiny_cross_encoder(tmp_path, labels=3)
    config = AutoConfig.from_pretrained(folder)
    config.id2label = dict(enumerate(LABELS))
    config.label2id = {label: number for number, label in enumerate(LABELS)}
    config.save_pretrained(folder)
    return folder


def lean(model_dir: Path, label: int) -> None:
    """Make the model predict `label` for every input."""
    model = AutoModelForSequenceClassification.from_pretrained(model_dir)
    model.classifier.weight.data.zero_()
    model.classifier.bias.data.zero_()
    model.classifier.bias.data[label] = 5.0
    model.save_pretrained(model_dir)


@pytest.mark.parametrize(("label", "sides"), [(0, (0, 1)), (1, (0, 0)), (2, (1, 0))])
def test_scores_follow_the_label_names(model_dir: Path, label: int, sides: tuple[int, int]) -> None:
    lean(model_dir, label)
    (support,) = NliSupport(str(model_dir)).score([("aspirin helps .", "aspirin helps .")])
    assert (round(support.score), round(support.against)) == sides


def test_score_is_the_probability_of_entailment(model_dir: Path) -> None:
    lean(model_dir, 2)
    scorer = NliSupport(str(model_dir))
    # A premise that is too long is truncated.
    for premise in ("aspirin helps .", "aspirin helps . " * 200):
        (support,) = scorer.score([(premise, "cats sleep .")])
        # softmax of (0, 0, 5): e^5 / (e^5 + 2) = 148.41 / 150.41
        assert support.score == pytest.approx(0.98670, abs=1e-4)
    (found,) = attribute(["aspirin helps ."], evidence("the heart ."), scorer, threshold=0.5)
    assert found is not None
    assert found.pmids == (1,)


def test_order_of_pairs_survives_sorting_by_length(model_dir: Path) -> None:
    pairs = [("aspirin helps the heart . " * 4, "a"), ("a", "cats sleep ."), ("aspirin", "heart")]
    together = NliSupport(str(model_dir), batch_size=2).score(pairs)
    alone = [NliSupport(str(model_dir)).score([pair])[0] for pair in pairs]
    assert [s.score for s in together] == pytest.approx([s.score for s in alone], abs=1e-5)


def test_scores_in_bfloat16_match_float32(model_dir: Path) -> None:
    pairs = [("aspirin reduces fever", "aspirin treats fever"), ("the cell", "the gene in blood")]
    short, full = (NliSupport(str(model_dir), dtype=kind) for kind in ("bfloat16", "float32"))
    assert {p.dtype for p in short._model.parameters()} == {torch.bfloat16}
    for ours, theirs in zip(short.score(pairs), full.score(pairs), strict=True):
        assert ours.score == pytest.approx(theirs.score, abs=0.05)


def test_labels_are_found_by_name() -> None:
    assert nli_labels({0: "entailment", 1: "neutral", 2: "contradiction"}) == (0, 2)
    assert nli_labels({0: "NOT ENOUGH INFO", 1: "REFUTES", 2: "SUPPORTS"}) == (2, 1)
    with pytest.raises(InputError, match=r"LABEL_0.*set id2label"):
        nli_labels({0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"})
