"""A checkpoint: what is trained, the optimizer's memory of it and the step, in one file.

It is safetensors, so that reading one runs no code, and is replaced in one step, so that a run
that is killed while it writes goes on from the one before.
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
    """Raises StorageError where `path` cannot be written."""
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
    """Set the parameters and the optimizer to `path`'s and give its step; 0 where there is none.

    Raises InputError where it is damaged or of another run: other data, recipe or base model.
    """
    if not path.is_file():
        return 0
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise InputError(f"{path}: not a checkpoint ({error}); remove it to train anew") from error
    if metadata.get("identity") != identity:
        raise InputError(
            f"{path}: left by a run with other data, another recipe or another base model; train "
            "into another folder, or remove it to train anew"
        )
    with torch.no_grad():
        for label, tensor in tensors.items():
            key, _, name = label.partition(" ")
            parameter = parameters[name]
            if key == WEIGHT:
                parameter.copy_(tensor)
            else:
                # AdamW counts its steps on the CPU.
                place = "cpu" if key == "step" else parameter.device
                optimizer.state[parameter][key] = tensor.to(place)
    return int(metadata["step"])
