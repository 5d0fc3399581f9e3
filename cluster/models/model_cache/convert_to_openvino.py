"""Convert a transformers model for OpenVINO, and cache the result.

Converted models are cached in the model store. Nothing is fetched, and no code from a model's
folder is run.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from torch import Tensor

from cluster.errors import one_line
from cluster.models.adapters import quiet_loading
from cluster.models.model_cache.converted_model import openvino
from cluster.models.store import ModelStore

# Smaller models are not cached, and run on torch unless OpenVINO is requested: converting one takes
# longer than it saves.
SMALL_BYTES = 10_000_000

log = logging.getLogger("citeray")


def is_small(module: Any) -> bool:
    """Return whether a model's weights take less than SMALL_BYTES."""
    return bool(sum(value.nbytes for value in module.state_dict().values()) < SMALL_BYTES)


def convert(module: Any, example: Mapping[str, Tensor], output: str) -> tuple[Any, Path | None]:
    """Return the converted `module`, from the cache if possible, and its folder in the cache.

    The folder is None for a model that is not cached. Weights from the cache are memory-mapped, so
    that several processes share them. Raises ValueError if an input has no effect on the model.
    """
    if is_small(module):
        return _converted(module, example, output), None
    weights = module.state_dict()
    package = openvino()
    versions = (package.__version__, torch.__version__, transformers.__version__)
    shape = (type(module).__name__, module.config.to_json_string(), output, *example)
    digest = hashlib.sha256("\n".join([*versions, *shape]).encode())
    for name, value in weights.items():
        digest.update(name.encode())
        digest.update(value.contiguous().reshape(-1).view(torch.uint8).numpy())
    folder = ModelStore(pins={}).root / "openvino" / digest.hexdigest()
    if not folder.is_dir():
        model = _converted(module, example, output)
        try:
            _save(model, folder)
        except (OSError, RuntimeError) as error:
            log.info("%s: the converted model is not cached (%s)", folder, one_line(str(error)))
            return model, None
    return package.Core().read_model(folder / "model.xml"), folder


def _converted(module: Any, example: Mapping[str, Tensor], output: str) -> Any:
    """Convert `module` without the cache."""
    # OpenVINO's own tracing of a transformers model takes longer.
    with quiet_loading(), torch.no_grad(), warnings.catch_warnings():
        # The tracer warns about values that it treats as constants. Wrong ones are detected
        # later, because they change the results of the probes, which have other shapes.
        warnings.simplefilter("ignore")
        plain = _ByPosition(copy.deepcopy(module).float().eval(), list(example), output)
        trace: Any = torch.jit.trace
        traced = trace(plain, tuple(example.values()), check_trace=False)
    model = openvino().convert_model(traced, example_input=tuple(example.values()))
    if len(model.inputs) != len(example):
        raise ValueError(f"of {list(example)} only {len(model.inputs)} are used")
    for port, name in zip(model.inputs, example, strict=True):
        port.get_tensor().set_names({name})
    return model


def _save(model: Any, folder: Path) -> None:
    """Write `model` to `folder` atomically."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".partial-") as aside:
        whole = Path(aside) / "model"
        whole.mkdir()
        openvino().save_model(model, whole / "model.xml", compress_to_fp16=False)
        # Another process may have written the same model in the meantime.
        if not folder.is_dir():
            whole.rename(folder)


class _ByPosition(torch.nn.Module):
    """A model that takes tensors by position and returns one tensor, as tracing requires."""

    def __init__(self, module: Any, names: Sequence[str], output: str) -> None:
        super().__init__()
        self.module, self.names, self.output = module, names, output

    def forward(self, *tensors: Tensor) -> Any:
        named = dict(zip(self.names, tensors, strict=True))
        return self.module(**named, return_dict=True)[self.output]
