"""Adapters of the tiny models, with random weights that change the models' results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peft import PeftModel
    from sentence_transformers import SentenceTransformer


LAYERS = r".*\.layer\.\d+\..*(query|key|value|dense)"


def adapted_encoder(base: Path, seed: int = 1) -> tuple[SentenceTransformer, PeftModel]:
    """Return the encoder at `base`, and its model with an adapter that is not merged."""
    import torch
    from peft import LoraConfig, get_peft_model
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(str(base), device="cpu")
    torch.manual_seed(seed)
    adapted = get_peft_model(
        encoder[0].auto_model,
        LoraConfig(
            task_type="FEATURE_EXTRACTION", r=2, target_modules=LAYERS, init_lora_weights=False
        ),
    )
    return encoder.eval(), adapted


def make_tiny_adapter(base: Path, path: Path, seed: int = 1, base_name: str = "") -> Path:
    """Write a tiny adapter to `path` as peft does."""
    _, adapted = adapted_encoder(base, seed)
    adapted.peft_config["default"].base_model_name_or_path = base_name or f"file:{base}"
    adapted.save_pretrained(str(path))
    return path
