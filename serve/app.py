"""Ray Serve application of the pipeline.

    Gateway ─► Expander, Encoder ─► Shard-0000 … Shard-NNNN ─► (Reranker) ─► Writer ─► LanguageModel

Each stage is a separate deployment, so it scales, batches and fails independently.
"""

from __future__ import annotations

import contextlib
from typing import Any

from ray import serve as ray_serve
from ray.exceptions import ActorDiedError, RayError
from ray.serve import RunTarget
from ray.serve.config import BackpressureConfig
from ray.serve.exceptions import RayServeException
from ray.serve.schema import LoggingConfig, TracingConfig

from cluster.errors import CiteRayError, one_line
from cluster.settings.limits import shutdown_s, target_ongoing
from cluster.settings.settings import Settings
from cluster.settings.stages.serving import SpreadStageSettings
from serve.graph.deployments import (
    BatchesDeployment,
    EncoderDeployment,
    RerankerDeployment,
    WriterDeployment,
)
from serve.graph.follow_versions import follow_expander, follow_shard
from serve.graph.following_stage import FollowingStage
from serve.graph.gateway import Cluster, Gateway
from serve.graph.load_stages import open_manifest
from serve.graph.ray_meters import RayMeters, metric_pages
from serve.graph.version_lease import MemoryLease
from serve.llm_app import LLM_APP, MODELS_APP, build_llm_app, read_arguments, served_here
from serve.search.pubmed.search_online import Online

APP = "citeray"
# Seconds between health checks, after which replicas of a lost node are restarted elsewhere.
HEALTH_CHECK_S = 3.0
# Label of Ray nodes that selects where a stage runs.
POOL = "citeray/pool"
# By default, idle OpenMP threads busy-wait on a core that another stage could use.
THREADS = {"OMP_WAIT_POLICY": "PASSIVE"}


def in_pool(pool: str) -> dict[str, Any]:
    """Return actor options that restrict a replica to the nodes of a pool; "" means any node."""
    return {"label_selector": {POOL: pool}} if pool else {}


def stage_options(settings: Settings, name: str) -> dict[str, Any]:
    """Return the options of the deployment whose settings are `serve.NAME`."""
    stage: SpreadStageSettings = getattr(settings.serve, name)
    options: dict[str, Any] = {
        "max_ongoing_requests": stage.max_ongoing,
        "max_queued_requests": stage.max_queued,
        "backpressure_config": BackpressureConfig(status_code=429, retry_after_s=2),
        "health_check_period_s": HEALTH_CHECK_S,
        "graceful_shutdown_timeout_s": shutdown_s(settings),
        "ray_actor_options": {
            "num_cpus": stage.cpus,
            "num_gpus": stage.gpus,
            "runtime_env": {"env_vars": THREADS},
            **in_pool(stage.pool),
        },
    }
    if stage.per_node:
        options["max_replicas_per_node"] = stage.per_node
    if stage.max_replicas > stage.min_replicas:
        options["autoscaling_config"] = {
            "min_replicas": stage.min_replicas,
            "max_replicas": stage.max_replicas,
            "target_ongoing_requests": target_ongoing(settings, name),
        }
    else:
        options["num_replicas"] = stage.min_replicas
    return options


def deployment(stage: Any, name: str, settings: Settings, *arguments: Any, **options: Any) -> Any:
    """Return the stage's class as a deployment bound to its arguments.

    `name` is that of its settings in `serve`, capitalised, such as "Shard-0000".
    """
    options |= stage_options(settings, name.partition("-")[0].lower())
    wrapped: Any = ray_serve.deployment(stage)
    return wrapped.options(name=name, **options).bind(*arguments)


def single_replica(stage: Any, name: str, pool: str, *arguments: Any) -> Any:
    """Return a deployment with one replica for the whole graph, which reserves no CPU."""
    wrapped: Any = ray_serve.deployment(stage)
    options = {"num_replicas": 1, "max_ongoing_requests": 1000}
    actor = {"num_cpus": 0, **in_pool(pool)}
    return wrapped.options(name=name, ray_actor_options=actor, **options).bind(*arguments)


def build_app(settings: Settings) -> Any:
    """Return the Serve application for the published version of `settings.index.path`."""
    manifest = open_manifest(settings)
    facts = (settings, manifest)
    # Pool of the single replicas: the gateways' nodes have the folder of the batches.
    pool = settings.serve.gateway.pool
    lease = single_replica(MemoryLease, "VersionLease", pool)
    encoder = deployment(EncoderDeployment, "Encoder", settings, *facts)
    bound = {
        "expander": deployment(
            FollowingStage, "Expander", settings, follow_expander, settings, lease, manifest
        ),
        "encoder": encoder,
        "pubmed": single_replica(Online, "PubMed", pool, settings.entrez),
        "writer": deployment(WriterDeployment, "Writer", settings, *facts, lease, encoder),
    }
    if settings.reranker.is_stage:
        bound["reranker"] = deployment(RerankerDeployment, "Reranker", settings, settings)
    shards = [
        deployment(
            FollowingStage,
            f"Shard-{number:04d}",
            settings,
            follow_shard,
            settings,
            lease,
            manifest,
            number,
        )
        for number in range(len(manifest.shards))
    ]
    # The gateway writes its own access log, with more detail than Serve's.
    logs = LoggingConfig(encoding="JSON", enable_access_log=False)
    gateway = ray_serve.ingress()(Gateway)
    batches = single_replica(BatchesDeployment, "Batches", pool, *facts, bound, shards)
    cluster = Cluster(RayMeters, metric_pages)
    arguments = (*facts, bound, shards, batches, cluster)
    return deployment(gateway, "Gateway", settings, *arguments, logging_config=logs)


def build(args: dict[str, str]) -> Any:
    """Build the application, for `serve run serve.app:build config=... index.path=...`.

    RayService also imports it. With `llm.kind: vllm` the model is a second application, built by
    `serve.llm_app:build`.
    """
    return build_app(read_arguments(args))


def deploy(settings: Settings) -> None:
    """Deploy the graph on the connected Ray cluster, with HTTP on serve.host:serve.port.

    Returns at once; `/readyz` reports when the graph is ready.
    """
    _run(build_app(settings), APP, "/", settings)


def deploy_llm(settings: Settings) -> None:
    """Deploy the language models' application if the settings need it; returns at once."""
    if served_here(settings):
        _run(build_llm_app(settings), LLM_APP, None, settings)


def run_models(settings: Settings) -> None:
    """Serve the language models for a graph outside Serve, and wait until they are ready.

    Raises CiteRayError if one cannot start.
    """
    # If `start` times out after a minute, `run` waits another minute for the proxies.
    with contextlib.suppress(TimeoutError, ActorDiedError):
        ray_serve.start()
    try:
        ray_serve.run(build_llm_app(settings), name=MODELS_APP, route_prefix=None)
    except (RuntimeError, TimeoutError) as error:
        raise CiteRayError(f"a language model cannot start: {one_line(str(error))}") from error


def stop_models() -> None:
    """Delete the application that `run_models` started."""
    ray_serve.delete(MODELS_APP)


def _run(app: Any, name: str, route_prefix: str | None, settings: Settings) -> None:
    # Both calls wait at most one minute for the proxies, which may start later on a busy machine.
    # Ignore the timeout, because the caller waits for the graph and thus for the proxies.
    with contextlib.suppress(TimeoutError, ActorDiedError):
        ray_serve.start(
            http_options={"host": settings.serve.host, "port": settings.serve.port},
            tracing_config=TracingConfig(
                enabled=settings.serve.trace_share > 0,
                exporter_import_path=f"{__package__}.graph.trace_requests:span_processors",
                sampling_ratio=settings.serve.trace_share,
            ),
        )
    target = RunTarget(app, name=name, route_prefix=route_prefix)
    with contextlib.suppress(TimeoutError):
        ray_serve.run_many([target], wait_for_applications_running=False)


def stop(drain_s: float) -> None:
    """Delete both applications, including the language model's processes.

    First refuses new questions and waits up to `drain_s` seconds for running ones.
    """
    running = ray_serve.status().applications
    if APP in running:
        with contextlib.suppress(RayServeException, RayError, TimeoutError):
            drained = ray_serve.get_app_handle(APP).broadcast("drain", drain_s)
            drained.results(timeout_s=drain_s + 1)
    # If nothing was deployed, Serve is not running, and `delete` would raise and hide the cause.
    for name in (APP, LLM_APP):
        if name in running:
            # Ray gives up after a minute, but replicas may have longer to end their streams.
            with contextlib.suppress(TimeoutError):
                ray_serve.delete(name)


def starting() -> list[str]:
    """Return the names of the deployments whose replicas have not started yet."""
    applications = ray_serve.status().applications
    return [
        name.lower()
        for application in (APP, LLM_APP)
        if application in applications
        for name, status in applications[application].deployments.items()
        if status.status != "HEALTHY"
    ]


def failure() -> str:
    """Return the messages of deployments that cannot start, or ""."""
    applications = ray_serve.status().applications
    return "; ".join(
        f"{name}: {status.message}"
        for application in (APP, LLM_APP)
        if application in applications
        for name, status in applications[application].deployments.items()
        if status.status in ("DEPLOY_FAILED", "UNHEALTHY") and status.message
    )
