"""Gateway of the graph: composes the stages, serves them over HTTP and reports readiness.

A handle is a `ray.serve.handle.DeploymentHandle`; this module does not import Ray.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

from fastapi import FastAPI

from cluster.index.manifest import Manifest
from cluster.models.adapters import full_name
from cluster.settings.presets import name_systems
from cluster.settings.settings import Settings
from cluster.settings.store_digests import store_digests
from serve.contracts.backend import Handle, HandleBackend, IndexFacts, call_handle
from serve.contracts.readiness import Readiness
from serve.graph.call_handles import batches_client, wait_until_ready
from serve.graph.follow_versions import StageVersion
from serve.http.api import create_api
from serve.http.join_metrics import fetch_metrics
from serve.http.middleware.admission import Admission
from serve.http.middleware.request_log import Meters
from serve.http.workbench.ask_service import ServiceAsk
from serve.pipeline.answer_question import QuestionAnswerer
from serve.saved.stores import open_saved
from serve.saved.watches.keep_checking import PoliteAsk, WatchKeeper
from serve.search.shard_stage import VersionName, oldest

# Seconds within which a stage must report its version; a slower stage counts as lost. A readiness
# probe waits this long for a dead stage, but a busy stage must not be mistaken for a dead one.
VERSION_S = 5.0
LOG = logging.getLogger("citeray")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Cluster services of a gateway.

    `meters` creates the request metrics; `pages` returns the URL of each node's metrics page.
    """

    meters: Callable[[], Meters]
    pages: Callable[[], list[str]]


class Gateway:
    """Composes the stages and serves them over HTTP.

    The gateway is ready once every stage is ready. If a stage fails later, answers are degraded
    and `/readyz` reports it.
    """

    def __init__(
        self,
        settings: Settings,
        manifest: Manifest,
        stages: dict[str, Handle],
        shards: Sequence[Handle],
        batches: Handle,
        cluster: Cluster,
    ) -> None:
        self._batches = batches_client(batches)
        # Serve's logger writes its records to files, as JSON.
        LOG.parent = logging.getLogger("ray.serve")
        LOG.setLevel(logging.INFO)
        self._settings = settings
        name_systems(settings.serve.systems)
        self._cluster = cluster
        self._admission = Admission.of(settings)
        self._manifest = manifest
        self._backend = HandleBackend(IndexFacts.of(manifest, settings), stages, shards)
        self.answerer = QuestionAnswerer(
            self._backend, settings.serve, settings.llm.evidence_characters
        )
        self._saved = open_saved(settings)
        self._loaded: set[str] = set()
        self._loading: list[asyncio.Task[None]] = []

    def __serve_build_asgi_app__(self) -> FastAPI:
        api = create_api(
            self,
            self._settings.serve,
            admission=self._admission,
            meters=self._cluster.meters(),
            batches=self._batches,
            saved=self._saved,
        )

        @contextlib.asynccontextmanager
        async def lifespan(_: FastAPI) -> AsyncIterator[None]:
            self._loading = [
                asyncio.create_task(self._await_stage(name, handle))
                for name, handle in self._backend.handles.items()
            ]
            keeper = self._keeper()
            if keeper is not None:
                keeper.begin()
            yield
            if keeper is not None:
                await keeper.end()

        api.router.lifespan_context = lifespan
        return api

    def _keeper(self) -> WatchKeeper | None:
        """Return the task that repeats saved questions; None for a graph pinned to one version."""
        if self._saved is None or self._settings.serve.as_of:
            return None
        serve = self._settings.serve
        ask = PoliteAsk(
            ServiceAsk(self.answerer, serve.system), lambda: self._admission.running > 0
        )
        return WatchKeeper(self._saved, ask, self._served_version, serve.request_deadline_s)

    async def _served_version(self) -> str:
        """Return the version that the shards serve, or "" while the graph is not ready."""
        state = await self.readiness()
        return state.index_version if state.ready else ""

    async def _await_stage(self, name: str, handle: Handle) -> None:
        await wait_until_ready(handle)
        self._loaded.add(name)

    def loading(self) -> list[str]:
        """Return the names of stages that have not been ready yet."""
        return [name for name in self._backend.handles if name not in self._loaded]

    async def _version(self, name: str, handle: Handle) -> StageVersion | None:
        with contextlib.suppress(Exception):
            if name in self._loaded:
                version: StageVersion = await asyncio.wait_for(
                    call_handle(handle, "version"), VERSION_S
                )
                return version
        return None

    async def metrics(self) -> bytes:
        """Return the metrics of all nodes in Prometheus text format."""
        return await fetch_metrics(await asyncio.to_thread(self._cluster.pages))

    async def drain(self, deadline_s: float) -> bool:
        """Refuse new questions and wait for running ones; return True if all ended in time."""
        return await self._admission.drain(deadline_s)

    async def readiness(self) -> Readiness:
        """Return the readiness; stages that do not answer in time have no version in it."""
        followers = self._backend.followers()
        asked = await asyncio.gather(*(self._version(n, h) for n, h in followers.items()))
        versions = {n: v for n, v in zip(followers, asked, strict=True) if v is not None}
        stages = {name: name in self._loaded for name in self._backend.handles}
        stages["gateway"] = not self._admission.draining
        lost = [n for n in followers if n in self._loaded and n not in versions]
        return describe_readiness(self._settings, self._manifest, stages, versions, lost)


def describe_readiness(
    settings: Settings,
    deployed: Manifest,
    stages: Mapping[str, bool],
    versions: Mapping[str, StageVersion],
    lost: Sequence[str] = (),
) -> Readiness:
    """Return the readiness of the graph.

    `stages` says which stages are loaded. `versions` has the version of each stage that reads the
    index and answers. `lost` names stages that are loaded but do not answer: the graph still
    answers without them, but is not ready. If no shard answers, the version is that of `deployed`.
    """
    shards = [name for name in stages if name.startswith("shard-")]
    serving = [versions[name] for name in shards if name in versions]
    read = oldest([v.name for v in serving]) if serving else VersionName.of(deployed)
    counts = {v.name: v.citations for v in serving}
    return Readiness(
        ready=all(stages.values()) and not lost,
        index_version=read.version,
        last_source=read.last_source,
        index_date=read.date,
        coverage=f"{len(serving)}/{len(shards)}",
        citations=counts.get(read, deployed.citations),
        models={
            "encoder": full_name(settings.encoder),
            "reranker": settings.reranker.model or settings.reranker.kind,
            "llm": settings.llm.model_id if settings.llm.kind != "none" else "none",
            **{
                name: role.model_id
                for name, role in settings.models.roles().items()
                if name != "judge" and role.kind != "none"
            },
        },
        stages={
            name: "lost" if name in lost else "ready" if loaded else "loading"
            for name, loaded in stages.items()
        },
        versions={name: v.name.version for name, v in versions.items()},
        refused={name: v.refused for name, v in versions.items() if v.refused},
        stores=store_digests(settings),
    )
