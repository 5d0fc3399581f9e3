"""Converts a transformers model for OpenVINO, keeps what was converted, and compiles it for a CPU.

Converted models are kept in the model store; nothing is fetched, and no code of a model is run.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import sys
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
from cluster.models.store import ModelStore

# Kernels that OpenVINO keeps, several for each shape of batch that it saw. Of its own 5,000 the
# shapes of a build would fill some GB: 156 shapes took 140 MB; with 64 they took 27 MB and 20% more
# time where every batch has a new shape.
KERNELS_KEPT = 128
# Smaller models are converted anew by each process.
KEPT_FROM_BYTES = 10_000_000

log = logging.getLogger("citeray")


def convert(module: Any, example: Mapping[str, Tensor], output: str) -> Any:
    """The converted model, read from the model store where it was converted before.

    Read from there it is mapped, so that processes share it; converting takes 1 to 2 s.
    """
    weights = module.state_dict()
    if sum(value.nbytes for value in weights.values()) < KEPT_FROM_BYTES:
        return _converted(module, example, output)
    openvino = _openvino()
    versions = (openvino.__version__, torch.__version__, transformers.__version__)
    shape = (type(module).__name__, module.config.to_json_string(), output, *example)
    digest = hashlib.sha256("\n".join([*versions, *shape]).encode())
    for name, value in weights.items():
        digest.update(name.encode())
        digest.update(value.contiguous().reshape(-1).view(torch.uint8).numpy())
    folder = ModelStore(pins={}).root / "openvino" / digest.hexdigest()
    if not folder.is_dir():
        model = _converted(module, example, output)
        try:
            _keep(model, folder)
        except (OSError, RuntimeError) as error:
            log.info("%s: the converted model is not kept (%s)", folder, one_line(str(error)))
            return model
    return openvino.Core().read_model(folder / "model.xml")


def compile_for_cpu(model: Any, precision: str, threads: int | None) -> Any:
    """A request for the converted model on this CPU."""
    options: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": precision,
        # Each process would pin its threads to the first cores, where those of all others are.
        "ENABLE_CPU_PINNING": False,
        "CPU_RUNTIME_CACHE_CAPACITY": KERNELS_KEPT,
    }
    if threads:
        options["INFERENCE_NUM_THREADS"] = threads
    return _openvino().Core().compile_model(model, "CPU", options).create_infer_request()


def _openvino() -> Any:
    # OpenVINO reports its use over the network where this package is installed. Without it a
    # stub takes its place.
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import openvino

    return openvino


def _converted(module: Any, example: Mapping[str, Tensor], output: str) -> Any:
    """The model as OpenVINO has it. Raises ValueError where an input has no effect on it."""
    # OpenVINO's own tracing of a transformers model takes three times as long.
    with quiet_loading(), torch.no_grad(), warnings.catch_warnings():
        # Of what a trace takes for constant; the probes have other shapes and would show it.
        warnings.simplefilter("ignore")
        plain = _ByPosition(copy.deepcopy(module).float().eval(), list(example), output)
        trace: Any = torch.jit.trace
        traced = trace(plain, tuple(example.values()), check_trace=False)
    model = _openvino().convert_model(traced, example_input=tuple(example.values()))
    if len(model.inputs) != len(example):
        raise ValueError(f"of {list(example)} only {len(model.inputs)} are used")
    for port, name in zip(model.inputs, example, strict=True):
        port.get_tensor().set_names({name})
    return model


def _keep(model: Any, folder: Path) -> None:
    """Write `model` as `folder`, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".partial-") as aside:
        whole = Path(aside) / "model"
        whole.mkdir()
        _openvino().save_model(model, whole / "model.xml", compress_to_fp16=False)
        # Where another process was faster its folder stays.
        if not folder.is_dir():
            whole.rename(folder)


class _ByPosition(torch.nn.Module):
    """A model that takes its tensors by position and gives one tensor, as tracing needs it."""

    def __init__(self, module: Any, names: Sequence[str], output: str) -> None:
        super().__init__()
        self.module, self.names, self.output = module, names, output

    def forward(self, *tensors: Tensor) -> Any:
        named = dict(zip(self.names, tensors, strict=True))
        return self.module(**named, return_dict=True)[self.output]
