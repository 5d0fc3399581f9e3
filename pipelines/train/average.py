"""Average the adapters of several training runs of one model.

Training runs that start from the same base and head, but differ in the order and number of their
examples, make different errors, and the mean of their weights makes fewer than each of them
(Wortsman et al. 2022, "Model soups", section 3.1).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor

from cluster.errors import InputError
from cluster.models.adapters import (
    CONFIG,
    TRAINING,
    WEIGHTS,
    adapter_checksum,
    base_of,
    read_object,
)
from cluster.storage.whole_files import write_atomically
from pipelines.train.adapt import low_rank
from pipelines.train.card import CARD, render_card

_A, _B = ".lora_A.weight", ".lora_B.weight"
# Settings that must be equal in all adapters, so that they change the same layers.
_SAME = ("target_modules", "task_type", "modules_to_save", "peft_type")

Weights = dict[str, Tensor]


def average_adapters(folders: Sequence[Path], out: Path, rank: int) -> None:
    """Write to `out` the adapter of rank `rank` that is closest to the mean of those in `folders`.

    Its card describes all of them. Raises InputError unless all folders are adapters of the same
    layers of one base, written by `citeray train`.
    """
    if len(folders) < 2:
        raise InputError("an average takes two adapters or more: name their folders")
    for folder in folders:
        adapter_checksum(folder)
        if not (folder / TRAINING).is_file():
            raise InputError(f"{folder} has no {TRAINING}: average what `citeray train` wrote")
    configs = [read_object(folder / CONFIG) for folder in folders]
    first = folders[0]
    for folder, config in zip(folders[1:], configs[1:], strict=True):
        if base_of(folder) != base_of(first) or any(config[k] != configs[0][k] for k in _SAME):
            raise InputError(
                f"{folder} changes other layers than {first}: average adapters of one recipe"
            )
    loaded = [load_file(folder / WEIGHTS) for folder in folders]
    scales = [config["lora_alpha"] / config["r"] for config in configs]
    mean = average(loaded, scales, rank)
    out.mkdir(parents=True, exist_ok=True)
    if (first / "config.json").is_file():
        write_atomically(out / "config.json", (first / "config.json").read_bytes())
    _write(out / CONFIG, configs[0] | {"r": rank, "lora_alpha": rank})
    write_atomically(out / WEIGHTS, save(mean, {"format": "pt"}))
    trainings = [read_object(folder / TRAINING) for folder in folders]
    # The measures of each training do not apply to the mean.
    whole = trainings[0] | {"measured": {}, "averaged": trainings}
    for files in ("data", "held_out"):
        named = {file["sha256"]: file for one in trainings for file in one[files]}
        whole[files] = list(named.values())
    _write(out / TRAINING, whole)
    write_atomically(out / CARD, render_card(whole).encode())


def average(adapters: Sequence[Weights], scales: Sequence[float], rank: int) -> Weights:
    """Return the mean of the adapters' changes as an adapter of rank `rank` and scale 1.

    Other weights are averaged directly. `scales` are the factors of each adapter's product of B
    (out, r) and A (r, in).
    """
    mean: Weights = {}
    for name in adapters[0]:
        if name.endswith(_B):
            continue
        if not name.endswith(_A):
            mean[name] = torch.stack([w[name].float() for w in adapters]).mean(0).half()
            continue
        other = name.removesuffix(_A) + _B
        change = torch.stack(
            [s * w[other].float() @ w[name].float() for w, s in zip(adapters, scales, strict=True)]
        ).mean(0)
        b, a = low_rank(change, rank)
        mean[other], mean[name] = b.half().contiguous(), a.half().contiguous()
    return mean


def _write(path: Path, value: Mapping[str, Any]) -> None:
    write_atomically(path, f"{json.dumps(value, indent=1, ensure_ascii=False)}\n".encode())
