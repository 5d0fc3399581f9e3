"""The image for CPUs, built by buildah and run: as root, on Debian.

It wants `apt-get install buildah debootstrap iproute2`, some ten minutes and 12 GB of disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images.engine import (
    DEMO,
    WANTED,
    Engine,
    check_demo,
    make_context,
)

pytestmark = [pytest.mark.durability, pytest.mark.nightly, *WANTED]
LARGEST = 2_500_000_000
# Any index will do where the settings of pip find torch's build for CPUs on this disk.
TORCH_INDEX = os.environ.get("CITERAY_TORCH_INDEX_URL", "file:///nowhere/")


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_context("cpu", tmp_path_factory.mktemp("context"))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, context: Path) -> Iterator[Engine]:
    built = Engine(tmp_path_factory.mktemp("engine"))
    try:
        built.make_base()
        built.build("cpu", context, TORCH_INDEX_URL=TORCH_INDEX, REVISION="0" * 40)
        yield built
    finally:
        built.remove()


def copies(layers: list[tuple[str, int, str]]) -> list[int]:
    """Places of the layers copied from other stages: the packages', and the code's."""
    places = [i for i, (_, _, step) in enumerate(layers) if "COPY" in step]
    assert len(places) == 2, layers
    return places


def test_the_image_is_small_and_all_but_its_packages_a_fraction_of_it(engine: Engine) -> None:
    layers = engine.layers("cpu")
    print("\n".join(f"{size / 1e6:8.1f} MB  {step[:90]}" for _, size, step in layers))
    assert sum(size for _, size, _ in layers) < LARGEST
    assert sum(size for _, size, _ in layers[copies(layers)[1] :]) < 100_000_000


def test_a_change_of_code_uses_the_layer_of_the_packages_again(
    engine: Engine, context: Path
) -> None:
    before = engine.layers("cpu")
    with (context / "serve/app.py").open("a", encoding="utf-8") as file:
        file.write("# A change.\n")
    engine.build("cpu", context, TORCH_INDEX_URL=TORCH_INDEX)
    assert "Collecting" not in engine.log
    after = engine.layers("cpu")
    packages, _ = copies(before)
    assert before[: packages + 1] == after[: packages + 1]
    assert before[packages + 1][0] != after[packages + 1][0]


def test_the_image_lists_what_is_in_it(engine: Engine, tmp_path: Path) -> None:
    done = engine.run("cpu", tmp_path, ["cat", "/opt/citeray/share/citeray/sbom.json"])
    names = {part["name"].lower() for part in json.loads(done.stdout)["components"]}
    assert {"torch", "ray", "faiss-cpu", "tantivy"} <= names
    licences = "/opt/citeray/share/citeray/licences.md"
    done = engine.run("cpu", tmp_path, ["grep", "-c", "MIT", licences])
    assert int(done.stdout) > 10
    labels = engine.inspect("cpu")["OCIv1"]["config"]["Labels"]
    assert labels["org.opencontainers.image.base.name"] == "localhost/debian-python:3.11"


def test_the_user_has_no_rights_and_the_root_is_read_only(engine: Engine, tmp_path: Path) -> None:
    told = engine.run("cpu", tmp_path, ["sh", "-c", "id -u; touch /opt/citeray/x; touch /app/x"])
    assert told.stdout.strip() == "10001"
    assert told.stderr.count("Read-only file system") == 2


def test_the_demo_answers_with_citations(engine: Engine, models: Path) -> None:
    check_demo(engine.run("cpu", models, DEMO))
