from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from cluster.settings.settings import load_settings
from pipelines.sample.write_sample import SampleCorpus, write_sample
from tests.end_to_end.command import CANARIES, small_settings
from tests.end_to_end.index_jobs import Jobs, write_corpus
from tests.end_to_end.indexed import Indexed
from tests.end_to_end.running_service import Service, running_service
from tests.end_to_end.two_nodes import two_nodes
from tests.end_to_end.waiting import await_that
from tests.serve.http_server import free_port
from tests.tiny_models import CACHED_ROWS, make_tiny_encoder, make_tiny_reader


@dataclass(frozen=True)
class RayHead:
    """Environments of a driver and of a job's submitter, and the dashboard's URL."""

    driver: dict[str, str]
    submitter: dict[str, str]
    dashboard: str


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder beside a tiny reader.

    On a CPU, their conversions are cached, as those of real models are after their first use, so
    that the processes of the tests do not import torch.
    """
    from cluster.models.encoder import Encoder
    from serve.graph.load_stages import load_reader

    folder = tmp_path_factory.mktemp("models")
    encoder = make_tiny_encoder(folder, rows=CACHED_ROWS)
    make_tiny_reader(folder, rows=CACHED_ROWS)
    settings = load_settings(overrides=small_settings(folder / "index", encoder, 1))
    Encoder.by(settings.encoder, encoder)
    load_reader(settings)
    return encoder


@dataclass(frozen=True)
class SampleIndex(Indexed):
    """The sample corpus and an index of it in two shards, which no test may change."""

    corpus: SampleCorpus
    built: subprocess.CompletedProcess


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleCorpus:
    """The sample corpus. Tests that damage its files copy them first."""
    return write_sample(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="session")
def sample_index(
    tmp_path_factory: pytest.TempPathFactory, encoder: Path, sample: SampleCorpus
) -> SampleIndex:
    """Build the sample index on a Ray that the command starts, with secrets in its environment."""
    path = tmp_path_factory.mktemp("sample-index") / "index"
    index = Indexed(path, small_settings(path, encoder, 2), CANARIES)
    built = index.command("build", str(sample.sources[0].parent), "--json")
    assert built.returncode == 0, built.stderr
    return SampleIndex(path, index.settings, {}, sample, built)


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Jobs:
    """Jobs on one corpus, whose undisturbed result all modules share."""
    folder = tmp_path_factory.mktemp("jobs")
    corpus = write_corpus(folder / "pubmed", per_file=200)
    return Jobs(folder, encoder, corpus, one_reference=True)


@pytest.fixture(scope="session")
def service(
    tmp_path_factory: pytest.TempPathFactory, sample_index: SampleIndex
) -> Iterator[Service]:
    """A service over the sample index. The last test of `test_service.py` stops it."""
    folder = tmp_path_factory.mktemp("service")
    with running_service(folder, sample_index.settings) as found:
        yield found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of `service` after all others on Ray, so that no other Ray runs meanwhile.

    `test_service.py` is the last of them, because it stops the service.
    """

    def order(item: pytest.Item) -> tuple[bool, bool, bool]:
        on_ray = item.get_closest_marker("ray") is not None
        uses_service = on_ray and "service" in getattr(item, "fixturenames", ())
        return not on_ray, uses_service, uses_service and item.path.name == "test_service.py"

    items.sort(key=order)


@pytest.fixture(scope="session")
def ray_head() -> Iterator[RayHead]:
    """A Ray head with a dashboard, its own ports, token and folder."""
    dashboard = free_port()
    options = ["--include-dashboard=true", f"--dashboard-port={dashboard}"]
    options += [f"--dashboard-agent-listen-port={free_port()}"]
    with two_nodes(head_options=options) as nodes:
        url = f"http://127.0.0.1:{dashboard}"
        headers = {"Authorization": f"Bearer {nodes.auth['RAY_AUTH_TOKEN']}"}
        # One client for all requests, because each new client would load the certificates again.
        with httpx.Client(base_url=url, headers=headers, timeout=5) as http:
            await_that(lambda: http.get("/api/jobs/").is_success, every_s=0.5, starting=True)
        yield RayHead(nodes.driver, nodes.auth, url)
