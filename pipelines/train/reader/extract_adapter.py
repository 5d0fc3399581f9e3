"""Extract an adapter from a fully trained model: each matrix's change, at low rank.

The change of a matrix is replaced by its best approximation of the given rank (truncated singular
value decomposition, Eckart and Young 1936), written as a LoRA adapter with a scale of 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from torch.nn.functional import pad

from pipelines.train.adapt import save_adapter
from pipelines.train.reader.reader_trainer import HEAD


def low_rank(change: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Return the factors B (out, rank) and A (rank, in) nearest to `change` (out, in)."""
    left, sizes, right = torch.svd_lowrank(change.float(), q=min(rank + 16, *change.shape), niter=4)
    root = sizes[:rank].sqrt()
    # A small matrix has fewer singular values than the rank: pad the rest with 0.
    missing = rank - len(root)
    b, a = left[:, :rank] * root, root[:, None] * right[:, :rank].T
    return pad(b, (0, max(0, missing))), pad(a, (0, 0, 0, max(0, missing)))


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


def write_adapter(adapted: PeftModel, base: str, folder: Path) -> None:
    """Write the adapter in 16 bits, with the configuration of the whole model."""
    folder.mkdir(parents=True, exist_ok=True)
    adapted.base_model.model.config.name_or_path = base
    save_adapter(adapted, base, folder)
    adapted.base_model.model.config.save_pretrained(folder)
