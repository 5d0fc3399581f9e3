"""The adapters in configs/adapters: small, safe to load, and with cards that tell what they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors import safe_open

from cluster.adapters import CONFIG, TRAINING, WEIGHTS, base_of
from cluster.model_sources import SHIPPED, parse_name
from cluster.models import read_pins
from pipelines.train.card import render_card
from pipelines.train.run_job import CARD

MOST_BYTES = 8_000_000

ADAPTERS = sorted(path for path in SHIPPED.iterdir() if path.is_dir())
each = pytest.mark.parametrize("adapter", ADAPTERS, ids=[path.name for path in ADAPTERS])


@each
def test_it_holds_small_safe_weights_and_what_they_need(adapter: Path) -> None:
    names = {path.name for path in adapter.iterdir()}
    assert {WEIGHTS, CONFIG, TRAINING, CARD} <= names
    assert {name.rpartition(".")[2] for name in names} <= {"safetensors", "json", "md"}
    assert sum(path.stat().st_size for path in adapter.iterdir()) < MOST_BYTES
    with safe_open(adapter / WEIGHTS, framework="numpy") as weights:
        assert list(weights.keys())


@each
def test_its_card_is_of_its_training_with_a_licence_and_measured_quality(adapter: Path) -> None:
    training = json.loads((adapter / TRAINING).read_text(encoding="utf-8"))
    assert (adapter / CARD).read_text(encoding="utf-8") == render_card(training)
    assert training["licence"]
    assert training["data"]
    assert training["measured"]
    # HealthVer states no licence.
    assert not any("healthver" in file["file"].lower() for file in training["data"])


@each
def test_its_model_is_one_that_can_be_had_and_is_pinned(adapter: Path) -> None:
    training = json.loads((adapter / TRAINING).read_text(encoding="utf-8"))
    base = base_of(adapter)
    assert base == training["base"]["model"]
    assert parse_name(base).kind == "pypi"
    assert read_pins()[base].sha256 == training["base"]["sha256"]
