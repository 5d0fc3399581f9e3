"""Choose the device and the number type of a model; imports torch but no model library."""

from __future__ import annotations

import ctypes
import os
import platform

import torch

from cluster.errors import InputError

# oneDNN caches a compiled kernel of about 0.4 MB for each batch shape, by default up to 1,024.
# Texts of all lengths fill this cache within minutes, and a smaller one is not slower. oneDNN reads
# the variable at its first multiplication, not when torch is imported.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

# Options of glibc's mallopt, from malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4

DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def keep_freed_memory() -> None:
    """Make glibc keep freed memory for the next batch instead of returning it to the kernel.

    By default glibc maps each large tensor anew and unmaps it when it is freed, and the kernel
    clears every page again, which takes a third of the time of a training on a CPU. The process
    keeps the memory of its largest batch, and more if its heap is fragmented, so this is not for
    services. Does nothing with another C library.
    """
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def choose_device(device: str) -> str:
    """Return `device`; "auto" becomes "cuda" or "cpu". Raises InputError if there is no GPU."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(f"device is {device!r}, but no GPU was found: set it to auto or cpu")
    return device


def choose_dtype(dtype: str, device: str) -> torch.dtype:
    """Return the torch dtype of a name; "auto" is bfloat16 if the hardware supports it.

    A CPU without AVX512-BF16, AMX or Arm's BF16 emulates bfloat16 at less than half the speed of
    float32, so "auto" is float32 there; a GPU without bfloat16 uses float16. Raises InputError for
    an unknown name.
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
