"""Checkpoints: the trained parameters, the state of the optimizer and the step, in one file.

The format is safetensors, so that loading runs no code. The file is replaced atomically, so that a
run that is killed while writing resumes from the previous checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch.nn.parameter import Parameter

from cluster.errors import InputError
from cluster.storage.whole_files import write_atomically

WEIGHT = "weight"


def write_checkpoint(
    path: Path,
    identity: str,
    step: int,
    parameters: Mapping[str, Parameter],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Write a checkpoint to `path`. Raises StorageError if it cannot be written."""
    tensors = {f"{WEIGHT} {name}": p.detach() for name, p in parameters.items()}
    for name, parameter in parameters.items():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{key} {name}"] = value
    plain = {name: value.contiguous().cpu() for name, value in tensors.items()}
    write_atomically(path, save(plain, {"identity": identity, "step": str(step)}))


def read_checkpoint(
    path: Path,
    identity: str,
    parameters: Mapping[str, Parameter],
    optimizer: torch.optim.Optimizer,
) -> int:
    """Restore the parameters and the optimizer from `path` and return its step; 0 if missing.

    Raises InputError if the checkpoint is damaged, or is of a run with other data, another recipe
    or another base model.
    """
    if not path.is_file():
        return 0
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise InputError(f"{path}: not a checkpoint ({error}); remove it to start again") from error
    if metadata.get("identity") != identity:
        raise InputError(
            f"{path}: left by a run with other data, another recipe or another base model; train "
            "into another folder, or remove it to start again"
        )
    with torch.no_grad():
        for label, tensor in tensors.items():
            key, _, name = label.partition(" ")
            parameter = parameters[name]
            if key == WEIGHT:
                parameter.copy_(tensor)
            else:
                # AdamW keeps its step counter on the CPU.
                place = "cpu" if key == "step" else parameter.device
                optimizer.state[parameter][key] = tensor.to(place)
    return int(metadata["step"])
