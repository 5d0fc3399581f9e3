"""The image for GPUs, built by buildah and run on CPUs, with an empty library for the driver.

It wants what tests/images/test_build.py does, and 40 GB of disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images.engine import DEMO, WANTED, Engine, check_demo, make_context

pytestmark = [pytest.mark.nightly, *WANTED]
LARGEST = 11_000_000_000
# The functions of the driver are bound when they are called, which nothing does without a GPU.
WITH_A_STUB = """
gcc -shared -nostdlib -Wl,-soname,libcuda.so.1 -o /tmp/libcuda.so.1 -x c /dev/null
LD_LIBRARY_PATH=/tmp exec "$@"
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    built = Engine(tmp_path_factory.mktemp("engine"))
    try:
        built.make_base()
        built.build("gpu", make_context("gpu", tmp_path_factory.mktemp("context")))
        yield built
    finally:
        built.remove()


def test_the_image_is_no_larger_than_its_packages_ask_for(engine: Engine) -> None:
    layers = engine.layers("gpu")
    print("\n".join(f"{size / 1e6:8.1f} MB  {step[:90]}" for _, size, step in layers))
    assert sum(size for _, size, _ in layers) < LARGEST


def test_the_image_lists_what_is_in_it(engine: Engine, tmp_path: Path) -> None:
    done = engine.run("gpu", tmp_path, ["cat", "/opt/citeray/share/citeray/sbom.json"])
    names = {part["name"].lower() for part in json.loads(done.stdout)["components"]}
    assert {"torch", "ray", "vllm", "faiss-gpu-cuvs", "tantivy"} <= names


def test_the_demo_answers_with_citations_where_there_is_no_gpu(
    engine: Engine, models: Path
) -> None:
    check_demo(engine.run("gpu", models, ["sh", "-euc", WITH_A_STUB, "sh", *DEMO]))
