from __future__ import annotations

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.model

# Prints the number of pages of memory per tensor that the kernel maps for 20 new tensors.
PROGRAM = """
import resource, torch
from cluster.models.hardware import keep_freed_memory

def make_tensors():
    for _ in range(20):
        torch.ones(2**26, dtype=torch.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

keep_freed_memory()
# The heap grows until no small block is in the way of a tensor.
before = make_tensors()
print((make_tensors() - before) / (2**26 / resource.getpagesize()))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="an option of glibc")
def test_memory_of_freed_tensors_is_used_again() -> None:
    # In a process of its own, because the option stays set.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2
