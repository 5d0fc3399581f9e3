"""What the gateway says of its stages while a shard's replica is gone and when it is back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cluster.settings.settings import load_settings
from serve.graph import gateway as gateways
from serve.graph.gateway import Cluster, Gateway
from serve.graph.versions.follow_versions import StageVersion
from serve.graph.versions.read_version import VersionName
from serve.http.door.note_requests import Meters
from serve.http.service import Readiness
from tests.small_index import citation, make_index


class Replica:
    """A deployment's handle; while it is `lost`, calls wait for a replica that does not come."""

    def __init__(self) -> None:
        self.lost = False

    def options(self, **_: Any) -> Replica:
        return self

    def __getattr__(self, method: str) -> Any:
        return _Method(self, method)


class _Method:
    def __init__(self, replica: Replica, name: str) -> None:
        self._replica, self._name = replica, name

    def remote(self, *_: Any) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self._answer())

    async def _answer(self) -> Any:
        if self._replica.lost:
            await asyncio.Event().wait()
        return StageVersion(VersionName("v000001", "n1.xml"), 4, "")


def test_a_shard_that_is_lost_under_a_ready_graph_makes_it_unready_until_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "VERSION_S", 0.05)
    manifest = make_index(tmp_path / "index", [citation(1, "One.")])
    settings = load_settings(overrides=[f"index.path={tmp_path / 'index'}"])
    shards: list[Any] = [Replica(), Replica()]
    stages: dict[str, Any] = {"expander": Replica(), "encoder": Replica()}
    batches: Any = Replica()

    async def looks() -> list[Readiness]:
        gateway = Gateway(settings, manifest, stages, shards, batches, Cluster(Meters, list))
        for name, handle in gateway._backend.handles.items():
            await gateway._await_stage(name, handle)
        found = [await gateway.readiness()]
        for lost in (True, False):
            shards[0].lost = lost
            found.append(await gateway.readiness())
        return found

    before, during, after = asyncio.run(looks())
    assert (before.ready, before.coverage) == (True, "2/2")
    assert (during.ready, during.coverage, during.stages["shard-0000"]) == (False, "1/2", "lost")
    assert after == before
