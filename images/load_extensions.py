"""Imports what the GPU image serves with and loads every extension of theirs, without a GPU.

The last step of images/Containerfile.gpu, with an empty `libcuda.so.1` for the driver. A library
that a wheel needs and no wheel of the lock brings fails the build.
"""

import ctypes
import importlib
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

IMPORTED = ("torch", "faiss", "transformers", "vllm", "ray.serve.llm", "serve.app", "serve.llm_app")
# Their extensions are loaded one by one, as an import may catch what one of them lacks.
LOADED = ("torchvision", "faiss", "vllm", "xgrammar", "tvm_ffi")
# Functions are bound when they are called: those of the driver are not there yet.
LAZY = os.RTLD_LAZY | os.RTLD_GLOBAL


def fits(path: Path) -> bool:
    """Whether an extension or library is for this Python."""
    name = path.name
    return any(name.endswith(suffix) for suffix in EXTENSION_SUFFIXES[:-1]) or "." not in path.stem


def broken(package: str) -> list[str]:
    """Sentences about the extensions of a package that cannot be loaded."""
    loader = ctypes.CDLL(None)
    loader.dlopen.restype, loader.dlerror.restype = ctypes.c_void_p, ctypes.c_char_p
    found = []
    for folder in map(Path, importlib.import_module(package).__path__):
        for path in sorted(filter(fits, folder.rglob("*.so"))):
            if not loader.dlopen(str(path).encode(), LAZY):
                found.append(f"{package}: {loader.dlerror().decode()}")
    return found


def main() -> None:
    """Exit 1 with a line for each extension that cannot be loaded."""
    sys.setdlopenflags(LAZY)
    for name in IMPORTED:
        importlib.import_module(name)
    failures = [sentence for package in LOADED for sentence in broken(package)]
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    main()
