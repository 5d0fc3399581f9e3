from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from cluster.models.readings import LABELS, NO, RELEVANT, SILENT, SUMMARY, YES
from pipelines.train.examples.mark_names import Marked
from pipelines.train.reader import records
from pipelines.train.reader.reader_trainer import (
    UNKNOWN,
    collate,
    encode_example,
    pair_logits,
    reader_loss,
    trained_parameters,
)
from pipelines.train.reader.records import ReaderExample, ScoredSentence
from pipelines.train.reader.train_reader import load_base
from pipelines.train.recipe import ReaderLosses
from pipelines.train.run_trainer import PAD_TO, length_batches, token_batches
from tests.tiny_models import make_tiny_encoder, tiny_tokenizer

pytestmark = pytest.mark.model

ASKED = "what treats fever ?"
TEXT = "The heart. Aspirin reduces bleeding in patients."
FIRST = ScoredSentence(0, 10, 0.0)
SECOND = ScoredSentence(11, len(TEXT), 0.75)
NAMES = (Marked(11, 26),)
LOSSES = ReaderLosses(relevance=0.7, stance=2.0, sentences=0.7, names=1.0)


def example(**changes: Any) -> ReaderExample:
    known: dict[str, Any] = {
        "question": ASKED,
        "text": TEXT,
        "relevant": 1.0,
        "stance": records.YES,
        "names": NAMES,
        "sentences": (FIRST, SECOND),
    }
    return ReaderExample(**(known | changes))


def encode(most: int = 64, **changes: Any) -> tuple[dict[str, Any], list[str]]:
    tokenizer = tiny_tokenizer()
    row = encode_example(tokenizer, example(**changes), most)
    return row, tokenizer.convert_ids_to_tokens(row["input_ids"])


def test_tokens_get_span_and_sentence_labels() -> None:
    row, tokens = encode()
    assert tokens[:2] == ["[CLS]", "what"]
    begin = tokens.index("[SEP]") + 1
    said = tokens[begin:-1]
    assert said == ["the", "heart", ".", "aspirin", "reduces", "bleeding", "in", "patients", "."]
    assert row["spans"][begin:-1] == [0, 0, 0, 1, 2, 0, 0, 0, 0]
    assert row["sentence"][begin:-1] == [0, 0, 0, *[1] * 6]
    assert set(row["spans"][:begin]) == {UNKNOWN} == {row["spans"][-1]}
    assert set(row["sentence"][:begin]) == {-1} == {row["sentence"][-1]}
    assert row["scores"] == [0.0, 0.75]
    without_names, _ = encode(names=())
    assert set(without_names["spans"]) == {UNKNOWN, 0}


def test_long_text_keeps_its_end_with_labels() -> None:
    before = "the heart and blood . " * 40
    shift = len(before)
    changes = {
        "text": before + TEXT,
        "names": tuple(Marked(m.begin + shift, m.end + shift) for m in NAMES),
        "sentences": tuple(
            ScoredSentence(s.begin + shift, s.end + shift, s.score) for s in (FIRST, SECOND)
        ),
    }
    for most in (24, 32, 64):
        row, tokens = encode(most, **changes)
        assert len(tokens) == most
        assert tokens[-7:-1] == ["aspirin", "reduces", "bleeding", "in", "patients", "."]
        assert row["spans"][-7:-1] == [1, 2, 0, 0, 0, 0]
        assert row["sentence"][-10:-1] == [0, 0, 0, *[1] * 6]
        assert row["sentence"][tokens.index("[SEP]") + 1] == -1


def test_token_batches_contain_every_text_once_by_length() -> None:
    lengths = [10, 60, 64, 65, 200, 130, *range(1, 300)]
    found = token_batches(lengths, 512, seed=1)
    assert sorted(place for batch in found for place in batch) == list(range(len(lengths)))
    for batch in found:
        padded = {-(-lengths[place] // PAD_TO) for place in batch}
        assert len(padded) == 1
        assert len(batch) * padded.pop() * PAD_TO < 2 * 512
    assert found == token_batches(lengths, 512, seed=1)
    assert found != token_batches(lengths, 512, seed=2)
    assert len(token_batches([5], 4096, seed=0)) == 1


def test_length_batches_reshuffle_every_epoch() -> None:
    found = length_batches(range(10), 5, 6, seed=1)
    epochs = [found[first] + found[first + 1] for first in (0, 2, 4)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert epochs[0] != epochs[1]
    assert found == length_batches(range(10), 5, 6, seed=1)


def batch_of(*rows: dict[str, Any]) -> dict[str, torch.Tensor]:
    return collate(rows, pad_id=0)


def test_collate_pads_and_numbers_sentences_across_rows() -> None:
    one, _ = encode()
    other, _ = encode(text="The heart. Blood.", sentences=(FIRST, ScoredSentence(11, 17, 0.5)))
    batch = batch_of(one, other)
    assert batch["input_ids"].shape == (2, PAD_TO)
    assert batch["attention_mask"].sum(1).tolist() == [len(r["input_ids"]) for r in (one, other)]
    assert sorted(set(batch["sentence"][1].tolist())) == [-1, 2, 3]
    assert batch["scores"].tolist() == [0.0, 0.75, 0.0, 0.5]
    assert set(batch["spans"][:, -1].tolist()) == {UNKNOWN}


def logits_of(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the logits of a model that predicts the labels of `example` correctly."""
    logits = torch.zeros(*batch["input_ids"].shape, len(LABELS))
    logits[..., RELEVANT] = 9.0
    logits[..., YES] = 9.0
    # 0.75 is the highest score, of the second sentence.
    second = (batch["sentence"] >= 0) & (batch["sentence"] % 2 == 1)
    logits[..., SUMMARY] = torch.where(second, torch.tensor(0.75).logit(), -9.0)
    for position in range(3):
        logits[..., position] = torch.where(batch["spans"] == position, 9.0, 0.0)
    return logits


def loss_of(batch: dict[str, torch.Tensor], logits: torch.Tensor) -> float:
    return float(reader_loss(logits, batch, LOSSES))


def test_each_kind_of_error_raises_the_loss() -> None:
    batch = batch_of(encode()[0], encode()[0])
    right = logits_of(batch)
    least = loss_of(batch, right)
    for name, change in {
        "relevance": lambda logits: logits[..., RELEVANT].fill_(-9.0),
        "stance": lambda logits: logits[..., NO].fill_(18.0),
        "silence": lambda logits: logits[..., SILENT].fill_(18.0),
        "sentences": lambda logits: logits[..., SUMMARY].neg_(),
        "names": lambda logits: logits[..., 0].fill_(18.0),
    }.items():
        wrong = right.clone()
        change(wrong)
        assert loss_of(batch, wrong) > least + 0.5, name


def test_padding_does_not_change_the_loss() -> None:
    batch = batch_of(encode()[0])
    logits = torch.randn(1, PAD_TO, len(LABELS), generator=torch.Generator().manual_seed(1))
    mask = batch["attention_mask"]
    seen = int(mask.sum())
    wanted = logits[:, :seen].mean(1)
    torch.testing.assert_close(pair_logits(logits, mask), wanted)
    noisy = logits.clone()
    noisy[:, seen:] = 50.0
    assert loss_of(batch, noisy) == pytest.approx(loss_of(batch, logits))


def test_unknown_labels_give_no_loss_and_no_gradient() -> None:
    row, _ = encode(names=None, sentences=None, relevant=None, stance=None)
    assert set(row["spans"]) == {UNKNOWN}
    batch = batch_of(row, row)
    logits = torch.randn(2, PAD_TO, len(LABELS), requires_grad=True)
    loss = reader_loss(logits, batch, LOSSES)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss) == 0.0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_example_weight_scales_relevance_and_stance_losses() -> None:
    names: dict[str, Any] = {"names": None, "sentences": None}
    full, half = (batch_of(encode(weight=weight, **names)[0]) for weight in (1.0, 0.5))
    logits = torch.zeros(1, PAD_TO, len(LABELS))
    assert loss_of(half, logits) == pytest.approx(loss_of(full, logits) / 2)


def test_only_encoder_matrices_and_the_head_are_trained(tmp_path: Path) -> None:
    model = load_base(make_tiny_encoder(tmp_path))
    learned = trained_parameters(model)
    assert {"classifier.weight", "classifier.bias"} <= set(learned)
    rest = [name for name in learned if not name.startswith("classifier")]
    assert len(rest) == 12
    assert all(".layer." in name and name.endswith("weight") for name in rest)
    needed = {name for name, p in model.named_parameters() if p.requires_grad}
    assert needed == set(learned)
    upper = [name for name in trained_parameters(model, 1) if not name.startswith("classifier")]
    assert upper == [name for name in rest if ".layer.1." in name]
