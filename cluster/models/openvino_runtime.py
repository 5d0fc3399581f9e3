"""Run a transformers model on a CPU with OpenVINO, which is faster than torch.

OpenVINO is an optional package (the extra `cpu`). If it cannot convert a model, or changes the
model's results, the model runs on torch and the reason is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from transformers.modeling_outputs import BaseModelOutput, TokenClassifierOutput

from cluster.errors import InputError, cut, one_line
from cluster.models.model_cache.cache_entries import MIN_COSINE, PRECISIONS, CacheEntry, Conditions
from cluster.models.model_cache.convert_to_openvino import convert, is_small
from cluster.models.model_cache.converted_model import ConvertedModel

Runtime = Literal["auto", "torch", "openvino"]
# Runs the model on fixed inputs and returns the rows (n, width) that its caller would use.
Probe = Callable[[], Tensor]

# The tensor of a model's output that is used, and the type of the output.
OUTPUTS = {"last_hidden_state": BaseModelOutput, "logits": TokenClassifierOutput}

PROBE_QUESTIONS = (
    "Does metformin activate AMPK?",
    "Which genes are mutated in patients with Noonan syndrome and congenital heart disease?",
    "What is the role of the TP53 gene in the Li-Fraumeni syndrome?",
)
_PASSAGE = (
    "Noonan syndrome is an autosomal dominant disorder with short stature, a webbed neck and "
    "congenital heart disease. Mutations of PTPN11 were found in 54 of 119 patients (45%), and "
    "of SOS1 in 16 others. Pulmonary valve stenosis was more frequent with PTPN11 mutations than "
    "without (71% and 52%, P = 0.03), and hypertrophic cardiomyopathy was less frequent. These "
    "genes encode proteins of the RAS-MAPK pathway, which regulates growth and differentiation. "
    "Genetic testing is advised before surgery, since bleeding disorders are common."
)
# Passages of at most about 120 tokens, the usual length in an index.
PROBE_PASSAGES = tuple(_PASSAGE[:-cut] for cut in (1, 40, 160, 320))

log = logging.getLogger("citeray")


def choose_runtime(
    module: Any,
    probes: Sequence[Probe],
    *,
    runtime: Runtime,
    device: str,
    dtype: torch.dtype,
    threads: int | None,
    name: str,
) -> Literal["torch", "openvino"]:
    """Make `module`, a transformers model, run on `runtime`, and return the runtime in use.

    "auto" means OpenVINO if it is installed, except for a small model. Torch is used if the results
    of `probes` differ. The model is traced with the inputs of the first probe, which must be a
    few short rows with padding. GPUs and float16 always use torch. Raises InputError if `runtime`
    is "openvino" on a GPU or without the package.
    """
    _check(runtime, device)
    runs = device == "cpu" and str(dtype).removeprefix("torch.") in PRECISIONS
    if runtime == "torch" or not runs or not is_installed():
        return "torch"
    if runtime == "auto" and is_small(module):
        return "torch"
    wanted = [probe() for probe in probes]
    try:
        compiled = OpenVinoForward(module, _recorded(module, probes[0]), dtype, threads)
        least = _least_cosine(wanted, _with(module, compiled, probes))
    except Exception as error:  # the converter raises many types of errors
        reason = cut(one_line(str(error)))
        log.warning("%s runs on torch: OpenVINO cannot run it (%s)", name, reason)
        return "torch"
    if not least >= MIN_COSINE:
        log.warning(
            "%s runs on torch: OpenVINO's results have a cosine of %.4f with torch's, and %s is "
            "the least accepted",
            *(name, least, MIN_COSINE),
        )
        return "torch"
    module.forward = compiled
    return "openvino"


def is_installed() -> bool:
    """Return whether the package openvino is installed, without importing it."""
    return find_spec("openvino") is not None


class OpenVinoForward:
    """Forward pass of a transformers model on this CPU, with dynamic batch sizes and lengths.

    A call takes tensors with the names in `example`, and returns the model's output type with one
    float32 tensor. `ConvertedModel` pads the inputs.
    """

    def __init__(
        self,
        module: Any,
        example: Mapping[str, Tensor],
        dtype: torch.dtype,
        threads: int | None,
    ) -> None:
        with torch.no_grad():
            outputs = module(**example)
        self._output = next(key for key in OUTPUTS if key in outputs)
        model, self.folder = convert(module, example, self._output)
        most = int(getattr(module.config, "max_position_embeddings", 0) or 0)
        precision = PRECISIONS[str(dtype).removeprefix("torch.")]
        self.model = ConvertedModel(model, list(example), precision, threads, most)

    def __call__(self, **inputs: Any) -> Any:
        """Return the output of the model for tensors of any batch size and length."""
        given = {k: v.numpy() for k, v in inputs.items() if isinstance(v, Tensor)}
        found = torch.from_numpy(self.model.run(given))
        return OUTPUTS[self._output](**{self._output: found})


def cache_record(
    module: Any, tokenizer: Any, conditions: Conditions, **facts: Any
) -> CacheEntry | None:
    """Return the cache record of a module that runs on OpenVINO, or None if it is not cacheable."""
    compiled: OpenVinoForward = module.forward
    if compiled.folder is None or not conditions.is_cacheable or tokenizer.pad_token_id is None:
        return None
    stored = {"pad": tokenizer.pad_token_id, "padding_side": tokenizer.padding_side, **facts}
    names, dtype = list(compiled.model.names), str(module.dtype).removeprefix("torch.")
    return CacheEntry(str(compiled.folder), names, dtype, compiled.model.most, stored)


def _check(runtime: Runtime, device: str) -> None:
    if runtime != "openvino":
        return
    if device != "cpu":
        raise InputError(
            f"encoder.runtime is openvino, which needs a CPU, but the device is {device}: set "
            "encoder.runtime to auto or torch"
        )
    if not is_installed():
        raise InputError(
            "encoder.runtime is openvino, but the package openvino is not installed: install it "
            'with `pip install "citeray[cpu]"`, or set encoder.runtime to auto or torch'
        )


def _recorded(module: Any, probe: Probe) -> dict[str, Tensor]:
    """Return the tensors with which `probe` calls `module`."""
    seen: dict[str, Tensor] = {}
    forward = module.forward

    def record(**inputs: Any) -> Any:
        seen.update({k: v for k, v in inputs.items() if isinstance(v, Tensor)})
        return forward(**inputs)

    _with(module, record, [probe])
    return seen


def _with(module: Any, forward: Callable[..., Any], probes: Sequence[Probe]) -> list[Tensor]:
    """Return the results of `probes` while `forward` replaces the forward pass of `module`."""
    module.forward = forward
    try:
        return [probe() for probe in probes]
    finally:
        # Deleting the instance attribute restores the method of the class.
        del module.forward


def _least_cosine(wanted: Sequence[Tensor], found: Sequence[Tensor]) -> float:
    """Return the lowest cosine over all rows; NaN if any row contains NaN."""
    pairs = zip(wanted, found, strict=True)
    return float(torch.cat([cosine_similarity(a.float(), b.float()) for a, b in pairs]).min())
