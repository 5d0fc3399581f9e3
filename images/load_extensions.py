"""Imports what the GPU image serves with and loads every extension of theirs, without a GPU.

The last step of images/Containerfile.gpu, with an empty `libcuda.so.1` for the driver. A library
that a wheel needs and no wheel of the lock brings fails the build.
"""

import ctypes
import importlib
import sys
from pathlib import Path

IMPORTED = ("torch", "faiss", "transformers", "vllm", "ray.serve.llm", "serve.app", "serve.llm_app")
# Their extensions are loaded one by one, as an import may catch what one of them lacks.
LOADED = ("torchvision", "vllm", "faiss", "libcuvs", "libraft", "librmm", "xgrammar", "tvm_ffi")


def broken(package: str) -> list[str]:
    """Sentences about the extensions of a package that cannot be loaded."""
    folder = Path(importlib.import_module(package).__path__[0])
    found = []
    for path in sorted(folder.rglob("*.so")):
        try:
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL | 1)
        except OSError as error:
            found.append(f"{package}: {error}")
    return found


def main() -> None:
    """Exit 1 with a line for each extension that cannot be loaded."""
    for name in IMPORTED:
        importlib.import_module(name)
    failures = [sentence for package in LOADED for sentence in broken(package)]
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    main()
