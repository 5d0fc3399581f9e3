from pathlib import Path

import pytest

from cluster.index.manifest import Manifest
from cluster.settings.settings import load_settings
from serve.graph.gateway import describe_readiness
from serve.graph.versions.follow_versions import StageVersion
from serve.graph.versions.read_version import VersionName
from serve.http.service import Readiness
from tests.small_index import citation, make_index

STAGES = dict.fromkeys(("expander", "shard-0000", "shard-0001", "encoder"), True)


@pytest.fixture
def deployed(tmp_path: Path) -> Manifest:
    manifest = make_index(tmp_path, [citation(1, "One.")])
    return manifest.model_copy(update={"last_source": "n1.xml"})


def serving(number: int, refused: str = "") -> StageVersion:
    return StageVersion(VersionName(f"v{number:06d}", f"n{number}.xml"), number * 100, refused)


def describe(deployed: Manifest, **versions: StageVersion) -> Readiness:
    named = {name.replace("_", "-"): version for name, version in versions.items()}
    return describe_readiness(load_settings(), deployed, STAGES, named)


def test_the_version_is_the_oldest_of_the_shards(deployed: Manifest) -> None:
    found = describe(deployed, expander=serving(1), shard_0000=serving(10), shard_0001=serving(9))
    assert (found.index_version, found.last_source) == ("v000009", "n9.xml")
    assert found.citations == 900
    assert found.coverage == "2/2"
    assert found.versions == {
        "expander": "v000001",
        "shard-0000": "v000010",
        "shard-0001": "v000009",
    }


def test_a_shard_that_does_not_answer_is_lost_and_the_graph_is_not_ready(
    deployed: Manifest,
) -> None:
    versions = {"expander": serving(3), "shard-0001": serving(3)}
    found = describe_readiness(load_settings(), deployed, STAGES, versions, ["shard-0000"])
    assert (found.coverage, found.ready, found.index_version) == ("1/2", False, "v000003")
    assert found.stages == {**dict.fromkeys(STAGES, "ready"), "shard-0000": "lost"}


def test_without_a_shards_word_the_version_is_the_deployed_one(deployed: Manifest) -> None:
    found = describe(deployed)
    assert (found.coverage, found.index_version, found.last_source) == ("0/2", "v000001", "n1.xml")


def test_a_stage_that_loads_keeps_the_graph_unready(deployed: Manifest) -> None:
    stages = {**STAGES, "encoder": False}
    found = describe_readiness(load_settings(), deployed, stages, {})
    assert found.ready is False
    assert found.stages["encoder"] == "loading"


def test_what_is_refused_is_said_by_stage(deployed: Manifest) -> None:
    found = describe(
        deployed, shard_0000=serving(1, "v000002 is not served: x"), expander=serving(2)
    )
    assert found.refused == {"shard-0000": "v000002 is not served: x"}
