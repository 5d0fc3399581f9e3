"""Extract an adapter from a fully trained model: each matrix's change, at low rank.

The change of a matrix is replaced by its best approximation of the given rank, as a LoRA adapter
with a scale of 1.
"""

from __future__ import annotations

from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn

from pipelines.train.adapt import low_rank
from pipelines.train.reader.reader_trainer import HEAD


def extract_adapter(base: nn.Module, trained: nn.Module, rank: int) -> PeftModel:
    """Return `base` with an adapter of `rank` that approximates `trained`.

    Both are token classifiers of one architecture; `base` is changed in place. The head is part of
    the adapter.
    """
    before = {name: p.detach().clone() for name, p in base.named_parameters()}
    # The trained model may be on a GPU; the base model is on the CPU.
    after = {name: p.detach().to(before[name]) for name, p in trained.named_parameters()}
    changed = [name for name in _matrices(base) if not torch.equal(before[name], after[name])]
    targets = [name.removesuffix(".weight") for name in changed]
    config = LoraConfig(
        task_type="TOKEN_CLS",
        r=rank,
        lora_alpha=rank,
        target_modules=targets,
        modules_to_save=[HEAD],
    )
    adapted = get_peft_model(base, config)
    with torch.no_grad():
        for name, target in zip(changed, targets, strict=True):
            layer: Any = adapted.base_model.model.get_submodule(target)
            b, a = low_rank(after[name] - before[name], rank)
            layer.lora_A["default"].weight.copy_(a)
            layer.lora_B["default"].weight.copy_(b)
        head: Any = adapted.base_model.model.get_submodule(HEAD)
        head.modules_to_save["default"].load_state_dict(trained.get_submodule(HEAD).state_dict())
    return adapted


def _matrices(model: nn.Module) -> list[str]:
    return [n for n, p in model.named_parameters() if ".layer." in n and p.ndim == 2]
