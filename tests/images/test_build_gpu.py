"""The image for GPUs, built by buildah and run on CPUs with an empty driver library.

Needs what tests/images/test_build.py needs, and 40 GB of disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images.engine import DEMO, WANTED, Engine, built_image, check_demo

pytestmark = [pytest.mark.nightly, *WANTED]
LARGEST = 11_000_000_000
# Driver functions are bound at their first call, and without a GPU none is called.
WITH_A_STUB = """
gcc -shared -nostdlib -Wl,-soname,libcuda.so.1 -o /tmp/libcuda.so.1 -x c /dev/null
LD_LIBRARY_PATH=/tmp exec "$@"
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with built_image("gpu", tmp_path_factory.mktemp("engine")) as built:
        yield built


def test_image_is_no_larger_than_its_packages(engine: Engine) -> None:
    assert sum(engine.layers("gpu")) < LARGEST


def test_gpu_image_lists_its_components(engine: Engine, tmp_path: Path) -> None:
    done = engine.run("gpu", tmp_path, ["cat", "/opt/citeray/share/citeray/sbom.json"])
    names = {part["name"].lower() for part in json.loads(done.stdout)["components"]}
    assert {"torch", "ray", "vllm", "faiss-gpu-cuvs", "tantivy"} <= names


def test_demo_answers_with_citations_without_a_gpu(engine: Engine, models: Path) -> None:
    check_demo(engine.run("gpu", models, ["sh", "-euc", WITH_A_STUB, "sh", *DEMO]))
