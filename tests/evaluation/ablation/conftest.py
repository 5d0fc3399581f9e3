from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.index.layout import vocabulary_file
from cluster.models.store import checksum
from serve.client import call_endpoint
from tests.evaluation.ablation.ablation_runs import Ablation, FlakyService
from tests.publish_manifest import publish
from tests.serve.api import make_api
from tests.serve.http_server import serving
from tests.serve.service import CORPUS
from tests.small_index import make_index
from tests.tiny_models import make_tiny_encoder, make_tiny_reader


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FlakyService, int]]:
    service = FlakyService(tmp_path_factory.mktemp("index"))
    with serving(make_api(service)) as port:
        yield service, port


@pytest.fixture
def service(served: tuple[FlakyService, int]) -> FlakyService:
    served[0].asked, served[0].lost, served[0].version = [], (), "v000001"
    return served[0]


@pytest.fixture
def run(
    tmp_path: Path,
    served: tuple[FlakyService, int],
    service: FlakyService,
    monkeypatch: pytest.MonkeyPatch,
) -> Ablation:
    # Only one retry: a lost stage stays lost, and the client would wait half a minute for it.
    monkeypatch.setattr(call_endpoint, "PAUSES_S", (0.1,))
    return Ablation(tmp_path, served[1])


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides for an index and an encoder that this process can load."""
    from cluster.models.encoder import Encoder

    folder = tmp_path_factory.mktemp("local")
    model = make_tiny_encoder(folder)
    encoder = Encoder(model, device="cpu", max_tokens=64)
    index = folder / "index"
    manifest = make_index(index, CORPUS, encoder=encoder)
    vocabularies = [index / vocabulary_file(version) for version in ("v000001", "v000002")]
    shutil.copy(*vocabularies)
    entry = manifest.encoder.model_copy(update={"sha256": checksum(model)})
    publish(index, manifest.model_copy(update={"version": "v000002", "encoder": entry}))
    values = [f"index.path={index}", f"encoder.model=file:{model}", "encoder.max_tokens=64"]
    values += [f"reader.model=file:{make_tiny_reader(folder)}", "reader.max_tokens=64"]
    values += ["namer.model=''"]
    return [word for value in values for word in ("--set", value)]
