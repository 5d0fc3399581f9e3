from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from cluster.errors import InputError
from pipelines.train.average import average_adapters

pytestmark = pytest.mark.model

LAYER = "base_model.model.layer.0.query"
CONFIG = {
    "base_model_name_or_path": "pypi:some-model==1/model",
    "peft_type": "LORA",
    "task_type": "TOKEN_CLS",
    "target_modules": "query",
    "modules_to_save": None,
    "r": 2,
    "lora_alpha": 4,
}


def adapter(folder: Path, seed: int, **changes: Any) -> Path:
    folder.mkdir()
    draw = torch.Generator().manual_seed(seed)
    config = CONFIG | changes
    weights = {
        f"{LAYER}.lora_A.weight": torch.randn(config["r"], 6, generator=draw).half(),
        f"{LAYER}.lora_B.weight": torch.randn(5, config["r"], generator=draw).half(),
        "base_model.model.classifier.bias": torch.randn(3, generator=draw).half(),
    }
    save_file(weights, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(config))
    training = {
        "kind": "reader",
        "base": {"model": config["base_model_name_or_path"], "sha256": "0" * 64},
        "recipe": {"rank": config["r"], "seed": seed},
        "data": [{"file": f"{seed}.json", "sha256": f"{seed:064}"}],
        "held_out": [],
        "licence": "ours",
        "measured": {"names F1": 0.25},
    }
    (folder / "training.json").write_text(json.dumps(training))
    return folder


def change_of(folder: Path) -> torch.Tensor:
    config = json.loads((folder / "adapter_config.json").read_text())
    weights = load_file(folder / "adapter_model.safetensors")
    down, up = weights[f"{LAYER}.lora_A.weight"], weights[f"{LAYER}.lora_B.weight"]
    assert down.shape == (config["r"], 6)
    return config["lora_alpha"] / config["r"] * up.float() @ down.float()


def test_averaged_adapter_has_the_mean_change(tmp_path: Path) -> None:
    folders = [adapter(tmp_path / "a", 1), adapter(tmp_path / "b", 2, r=1, lora_alpha=3)]
    average_adapters(folders, tmp_path / "out", rank=3)
    mean = torch.stack([change_of(folder) for folder in folders]).mean(0)
    assert torch.allclose(change_of(tmp_path / "out"), mean, atol=0.02)
    name = "base_model.model.classifier.bias"
    heads = [load_file(f / "adapter_model.safetensors")[name].float() for f in folders]
    found = load_file(tmp_path / "out" / "adapter_model.safetensors")[name]
    assert torch.allclose(found.float(), torch.stack(heads).mean(0), atol=0.01)
    # The averaged adapter has not been measured.
    assert json.loads((tmp_path / "out" / "training.json").read_text())["measured"] == {}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Learned from: 1.json" in card
    assert "Learned from: 2.json" in card


@pytest.mark.parametrize(
    "changes", [{"base_model_name_or_path": "file:other"}, {"target_modules": "key"}]
)
def test_adapters_of_other_models_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    folders = [adapter(tmp_path / "a", 1), adapter(tmp_path / "b", 2, **changes)]
    with pytest.raises(InputError, match="changes other layers than"):
        average_adapters(folders, tmp_path / "out", 4)
    with pytest.raises(InputError, match="two adapters or more"):
        average_adapters(folders[:1], tmp_path / "out", 4)
    assert not (tmp_path / "out").exists()
