from pathlib import Path

import pytest

from cluster.index.manifest import Manifest
from cluster.settings.settings import load_settings
from serve.graph.gateway import describe_readiness
from serve.graph.versions.follow_versions import StageVersion
from serve.graph.versions.read_version import VersionName
from tests.small_index import citation, make_index

STAGES = dict.fromkeys(("expander", "shard-0000", "shard-0001", "encoder"), True)


@pytest.fixture
def deployed(tmp_path: Path) -> Manifest:
    manifest = make_index(tmp_path, [citation(1, "One.")])
    return manifest.model_copy(update={"last_source": "n1.xml"})


def serving(number: int, refused: str = "") -> StageVersion:
    return StageVersion(VersionName(f"v{number:06d}", f"n{number}.xml"), number * 100, refused)


def test_the_version_is_the_oldest_of_the_shards_and_refusals_are_said(deployed: Manifest) -> None:
    refusing = serving(10, "v000011 is not served: x")
    told = {"expander": serving(1), "shard-0000": refusing, "shard-0001": serving(9)}
    found = describe_readiness(load_settings(), deployed, STAGES, told)
    assert (found.index_version, found.last_source) == ("v000009", "n9.xml")
    assert (found.citations, found.coverage) == (900, "2/2")
    assert found.versions == {name: version.name.version for name, version in told.items()}
    assert found.refused == {"shard-0000": "v000011 is not served: x"}


def test_without_a_shards_word_the_version_is_the_deployed_one(deployed: Manifest) -> None:
    found = describe_readiness(load_settings(), deployed, STAGES, {})
    assert (found.coverage, found.index_version, found.last_source) == ("0/2", "v000001", "n1.xml")


def test_a_stage_that_loads_keeps_the_graph_unready(deployed: Manifest) -> None:
    stages = {**STAGES, "encoder": False}
    found = describe_readiness(load_settings(), deployed, stages, {})
    assert found.ready is False
    assert found.stages["encoder"] == "loading"
