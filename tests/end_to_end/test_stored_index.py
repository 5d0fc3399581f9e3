"""An index in an object store on a real Ray, by the command line; its sources lie there too."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Question
from cluster.index.manifest import read_manifest
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from cluster.storage.places import StoredPlace, list_files, upload
from pipelines.sample.write_sample import SampleCorpus, write_sample
from serve.graph.local_graph import local_answerer
from serve.request import Request
from tests.end_to_end.command import run, small_settings, with_settings
from tests.object_store import BUCKET, s3_server

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

INDEX, SOURCES = f"s3://{BUCKET}/indexes/sample", f"s3://{BUCKET}/pubmed"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleCorpus:
    return write_sample(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def settings(
    tmp_path_factory: pytest.TempPathFactory, sample: SampleCorpus, encoder: Path
) -> Iterator[list[str]]:
    """Settings of an index in a store that holds the sources; Ray's workers get at it alike."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as environment, s3_server(environment) as client:
        for source in sample.sources:
            upload(source, StoredPlace.at(SOURCES, cache) / source.name)
        found = small_settings(Path("unused"), encoder, 2)
        yield [*found, f"index.path={INDEX}", f"index.cache={cache}"]
        client.delete_dir_contents(BUCKET)


def citeray(settings: list[str], *words: str) -> subprocess.CompletedProcess:
    return run(with_settings([sys.executable, "-m", "commands.cli", *words], settings))


def result(settings: list[str], *words: str) -> Any:
    done = citeray(settings, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def built(settings: list[str], sample: SampleCorpus) -> dict[str, Any]:
    """What the build of the first two sources said."""
    names = [f"{SOURCES}/{source.name}" for source in sample.sources[:2]]
    found: dict[str, Any] = result(settings, "index", "build", *names)
    return found


def test_workers_build_in_the_store_and_leave_no_staging_there(
    built: dict[str, Any], settings: list[str]
) -> None:
    assert (built["version"], built["citations"]) == ("v000001", 312)
    place = load_settings(overrides=settings).index.place
    top = {name.split("/")[0] for name in list_files(place)}
    assert top == {"CURRENT", "LEASE", "segments", "versions"}


def test_a_search_reads_what_was_built(built: dict[str, Any], settings: list[str]) -> None:
    found = result(settings, "search", "aspirin", "--system", "bm25")
    assert found["citations"]


def test_an_update_is_applied_and_verified_in_the_store(
    built: dict[str, Any], settings: list[str]
) -> None:
    assert result(settings, "index", "update", SOURCES)["citations"] == 313
    assert result(settings, "index", "verify", "--sources", SOURCES)["clean"]
    loaded = load_settings(overrides=settings)
    answerer = local_answerer(loaded)
    found = asyncio.run(
        answerer.search(Request(Question("1", "aspirin"), load_system("hybrid"), 5))
    )
    assert found.citations
    assert read_manifest(loaded.index.place).version == "v000002"
