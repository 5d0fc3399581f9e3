"""Which device and number type a model runs with; imports torch and nothing above it."""

from __future__ import annotations

import os

import torch

from cluster.errors import InputError

# oneDNN keeps a compiled kernel of some 0.4 MB for each shape of batch that it saw, 1,024 of them
# if not told otherwise: texts of all lengths fill that within minutes, and fewer are no slower.
# It reads this when it first multiplies, not when torch is imported.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def choose_device(device: str) -> str:
    """`device`, where "auto" is the GPU if there is one. InputError for a GPU that is missing."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(
            f"device {device!r} is asked for and no GPU is seen: set it to auto or cpu"
        )
    return device


def choose_dtype(dtype: str, device: str) -> torch.dtype:
    """`dtype` by name, where "auto" is bfloat16 wherever the hardware multiplies in it.

    A CPU without AVX512-BF16, AMX or Arm's BF16 emulates bfloat16 and runs it at less than half
    the speed of float32, so there "auto" is float32. Raises InputError for an unknown name.
    """
    if dtype in DTYPES:
        return DTYPES[dtype]
    if dtype != "auto":
        raise InputError(f"dtype {dtype!r} is unknown: choose auto, {', '.join(DTYPES)}")
    if device.startswith("cuda"):
        return torch.bfloat16 if torch.cuda.is_bf16_supported(False) else torch.float16
    return torch.bfloat16 if _cpu_has_bfloat16() else torch.float32


def _cpu_has_bfloat16() -> bool:
    features = torch.cpu.get_capabilities()
    return any(features.get(name) for name in ("avx512_bf16", "amx_bf16", "arm_bf16", "bf16"))
