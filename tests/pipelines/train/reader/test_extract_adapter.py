"""The extracted adapter computes the same as the trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from cluster.models.adapters import model_folder
from cluster.models.reader import Reader
from cluster.settings.settings import load_settings
from pipelines.train.adapt import save_model
from pipelines.train.reader.train_reader import extract_adapter, load_base
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model

RANK = 4


def changed(folder: Path, rank: int = RANK) -> Any:
    """Return the model with a change of `rank` to each matrix, and another head."""
    torch.manual_seed(1)
    model = load_base(folder)
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            if ".layer." in name and parameter.ndim == 2:
                a, b = (torch.randn(n, rank) for n in parameter.shape)
                parameter += 0.05 * a @ b.T
            elif name.startswith("classifier"):
                parameter += torch.randn_like(parameter)
    return model.eval()


def test_written_adapter_loads_as_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "store"))
    base = make_tiny_encoder(tmp_path)
    trained = changed(base)
    out = tmp_path / "adapter"
    out.mkdir()
    adapted = extract_adapter(load_base(base), trained, RANK)
    save_model(adapted.base_model.model, None, adapted, f"file:{base}", out)
    chosen = load_settings().reader.model_copy(
        update={"model": f"file:{base}", "adapter": f"file:{out}", "sha256": ""}
    )
    limits: dict[str, Any] = {"max_tokens": 48, "batch_size": 2}
    loaded = Reader.load(model_folder(chosen), device="cpu", dtype="float32", **limits)
    direct = Reader(trained, AutoTokenizer.from_pretrained(base), **limits)
    texts = ["aspirin treats fever .", "the heart " * 60]
    for found, wanted in zip(
        loaded.read("what ?", texts), direct.read("what ?", texts), strict=True
    ):
        # The adapter is written in 16 bits.
        assert found.relevance == pytest.approx(wanted.relevance, abs=0.01)
        assert found.no == pytest.approx(wanted.no, abs=0.01)
        assert [s.end for s in found.sentences] == [s.end for s in wanted.sentences]
