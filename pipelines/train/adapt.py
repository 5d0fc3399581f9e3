"""Prepare a model for training, of an adapter and a head or of every weight, and save it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import set_seed

from cluster.models.adapters import WEIGHTS, quiet_loading
from cluster.models.load_safely import SAFE_WEIGHTS
from cluster.storage.whole_files import write_atomically
from pipelines.train.recipe import AdapterRecipe

TaskType = Literal["FEATURE_EXTRACTION", "TOKEN_CLS", "SEQ_CLS", "CAUSAL_LM"]


def load_with_head(kind: Any, base: Path, labels: Sequence[str], **config: Any) -> Any:
    """Load the model in the folder `base` with a new head for `labels`, in float32.

    `kind` is a class of transformers, such as AutoModelForTokenClassification; `config` overrides
    values of the model's configuration. The head depends on torch's random state.
    """
    with quiet_loading():
        return kind.from_pretrained(
            base,
            **SAFE_WEIGHTS,
            dtype=torch.float32,
            id2label=dict(enumerate(labels)),
            label2id={label: position for position, label in enumerate(labels)},
            **config,
        )


def add_adapter(model: nn.Module, recipe: AdapterRecipe, task: TaskType) -> PeftModel | None:
    """Add an adapter to the layers of `model`, in place, and return it; None for rank 0.

    The model's dropout is set to the recipe's, too.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = recipe.dropout
    if recipe.rank == 0:
        return None
    set_seed(recipe.seed)
    return get_peft_model(
        model,
        LoraConfig(
            task_type=task,
            r=recipe.rank,
            lora_alpha=recipe.alpha,
            lora_dropout=recipe.dropout,
            target_modules=recipe.targets,
        ),
    )


def low_rank(change: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return the factors B (out, rank) and A (rank, in) whose product is nearest to `change`.

    This is the truncated singular value decomposition (Eckart and Young 1936). If `change` (out,
    in) has fewer singular values than `rank`, the rest of the factors is 0.
    """
    left, sizes, right = torch.linalg.svd(change.float(), full_matrices=False)
    root = sizes[:rank].sqrt()
    missing = max(0, rank - len(root))
    b, a = left[:, :rank] * root, root[:, None] * right[:rank]
    return pad(b, (0, missing)), pad(a, (0, 0, 0, missing))


def save_adapter(adapted: PeftModel, base: str, folder: Path) -> None:
    """Write the adapter in 16 bits; `base` is the name of its model."""
    # Without embeddings, because with "auto" peft asks the model hub whether they changed.
    weights = get_peft_model_state_dict(adapted, save_embedding_layers=False)
    halves = {name: tensor.half().contiguous().cpu() for name, tensor in weights.items()}
    config = adapted.peft_config["default"]
    config.base_model_name_or_path = base
    config.inference_mode = True
    config.save_pretrained(str(folder))
    write_atomically(folder / WEIGHTS, save(halves, {"format": "pt"}))


def save_model(
    model: Any, tokenizer: Any, adapted: PeftModel | None, base: str, folder: Path
) -> None:
    """Write the trained part of a transformers model: the adapter, or the whole model.

    `base` is the name of the model that training started from.
    """
    # Replace the local path from which the model was loaded.
    model.config.name_or_path = base
    if adapted is None:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return
    save_adapter(adapted, base, folder)
    model.config.save_pretrained(folder)
