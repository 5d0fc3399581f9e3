from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cluster.index.manifest import Manifest
from cluster.settings.settings import load_settings
from serve.contracts.readiness import Readiness
from serve.graph import gateway as gateways
from serve.graph.follow_versions import StageVersion
from serve.graph.gateway import Cluster, Gateway, describe_readiness
from serve.http.middleware.request_log import Meters
from serve.search.shard_stage import VersionName
from tests.serve.local_handle import LocalHandle
from tests.small_index import citation, make_index


class Replica:
    """Stage that does not answer while it is `lost`."""

    lost = False

    async def ready(self) -> str:
        return "ready"

    async def version(self) -> StageVersion:
        if self.lost:
            await asyncio.Event().wait()
        return StageVersion(VersionName("v000001", "n1.xml"), 4, "")


def test_lost_shard_makes_the_graph_unready_until_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "VERSION_S", 0.05)
    manifest = make_index(tmp_path / "index", [citation(1, "One.")])
    settings = load_settings(overrides=[f"index.path={tmp_path / 'index'}"])
    shards: list[Any] = [LocalHandle(Replica()), LocalHandle(Replica())]
    names = ("expander", "encoder")
    stages: dict[str, Any] = {name: LocalHandle(Replica()) for name in names}
    batches: Any = LocalHandle(None)

    async def looks() -> list[Readiness]:
        gateway = Gateway(settings, manifest, stages, shards, batches, Cluster(Meters, list))
        for name, handle in gateway._backend.handles.items():
            await gateway._await_stage(name, handle)
        found = [await gateway.readiness()]
        for lost in (True, False):
            shards[0].stage.lost = lost
            found.append(await gateway.readiness())
        return found

    before, during, after = asyncio.run(looks())
    assert (before.ready, before.coverage) == (True, "2/2")
    assert (during.ready, during.coverage, during.stages["shard-0000"]) == (False, "1/2", "lost")
    assert after == before


STAGES = dict.fromkeys(("expander", "shard-0000", "shard-0001", "encoder"), True)


@pytest.fixture
def deployed(tmp_path: Path) -> Manifest:
    manifest = make_index(tmp_path, [citation(1, "One.")])
    return manifest.model_copy(update={"last_source": "n1.xml"})


def serving(number: int, refused: str = "") -> StageVersion:
    return StageVersion(VersionName(f"v{number:06d}", f"n{number}.xml"), number * 100, refused)


def test_readiness_has_the_oldest_version_and_refusals(deployed: Manifest) -> None:
    refusing = serving(10, "v000011 is not served: x")
    stages = {"expander": serving(1), "shard-0000": refusing, "shard-0001": serving(9)}
    found = describe_readiness(load_settings(), deployed, STAGES, stages)
    assert (found.index_version, found.last_source) == ("v000009", "n9.xml")
    assert (found.citations, found.coverage) == (900, "2/2")
    assert found.versions == {name: version.name.version for name, version in stages.items()}
    assert found.refused == {"shard-0000": "v000011 is not served: x"}


def test_readiness_without_shards_has_the_deployed_version(deployed: Manifest) -> None:
    found = describe_readiness(load_settings(), deployed, STAGES, {})
    assert (found.coverage, found.index_version, found.last_source) == ("0/2", "v000001", "n1.xml")


def test_loading_stage_makes_the_graph_unready(deployed: Manifest) -> None:
    stages = {**STAGES, "encoder": False}
    found = describe_readiness(load_settings(), deployed, stages, {})
    assert found.ready is False
    assert found.stages["encoder"] == "loading"
