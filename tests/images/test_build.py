"""The image for CPUs, built and run by buildah, as root on Debian.

Needs `apt-get install buildah mmdebstrap iproute2`, about ten minutes and 12 GB of disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images.engine import DEMO, WANTED, Engine, built_image, check_demo

pytestmark = [pytest.mark.nightly, *WANTED]
LARGEST = 2_500_000_000
# Any value is valid where pip's settings find torch's build for CPUs on this disk.
TORCH_INDEX = os.environ.get("CITERAY_TORCH_INDEX_URL", "file:///nowhere/")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    options = {"TORCH_INDEX_URL": TORCH_INDEX, "REVISION": "0" * 40}
    with built_image("cpu", tmp_path_factory.mktemp("engine"), **options) as built:
        yield built


@pytest.mark.durability
def test_image_is_small(engine: Engine) -> None:
    assert sum(engine.layers("cpu")) < LARGEST


@pytest.mark.durability
def test_cpu_image_lists_its_components(engine: Engine, tmp_path: Path) -> None:
    done = engine.run("cpu", tmp_path, ["cat", "/opt/citeray/share/citeray/sbom.json"])
    names = {part["name"].lower() for part in json.loads(done.stdout)["components"]}
    assert {"torch", "ray", "faiss-cpu", "tantivy"} <= names
    licences = "/opt/citeray/share/citeray/licences.md"
    done = engine.run("cpu", tmp_path, ["grep", "-c", "MIT", licences])
    assert int(done.stdout) > 10
    labels = engine.inspect("cpu")["OCIv1"]["config"]["Labels"]
    assert labels["org.opencontainers.image.base.name"] == "localhost/debian-python:3.11"


@pytest.mark.durability
def test_user_is_unprivileged_and_root_is_read_only(engine: Engine, tmp_path: Path) -> None:
    printed = engine.run("cpu", tmp_path, ["sh", "-c", "id -u; touch /opt/citeray/x; touch /app/x"])
    assert printed.stdout.strip() == "10001"
    assert printed.stderr.count("Read-only file system") == 2


def test_demo_answers_with_citations(engine: Engine, models: Path) -> None:
    check_demo(engine.run("cpu", models, DEMO))
