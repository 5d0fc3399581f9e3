"""Ray Serve wiring of the question's path.

    Gateway ─► Expander, Encoder ─► Shard-0000 … Shard-NNNN ─► (Reranker) ─► Writer ─► LanguageModel

Each stage is a deployment of its own, so each scales, batches and fails alone.
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
from cluster.settings.settings import Settings, SpreadStageSettings
from serve.graph.deployments import Batches, Encoder, Reranker, Writer
from serve.graph.gateway import Cluster, Gateway
from serve.graph.index_stages import Expander, Shard
from serve.graph.load_stages import open_manifest
from serve.graph.ray_meters import RayMeters, metric_pages
from serve.graph.versions.take_turns import Lease
from serve.llm_app import LLM_APP, MODELS_APP, build_llm_app, read_arguments, served_here
from serve.search.pubmed.search_online import Online

APP = "citeray"
# How soon the replicas of a lost node are missed, and started where there is room.
HEALTH_CHECK_S = 3.0
# The label of Ray nodes by which stages are told where to run.
POOL = "citeray/pool"
# Threads of OpenMP that wait for work spin on a core that another stage could use: with 16 callers
# on 2 cores 2.0 questions a second, 2.7 without, for 5% of the reranker's time alone.
THREADS = {"OMP_WAIT_POLICY": "PASSIVE"}


def in_pool(pool: str) -> dict[str, Any]:
    """The actor options that keep a replica to the Ray nodes of a pool; "": to none."""
    return {"label_selector": {POOL: pool}} if pool else {}


def stage_options(stage: SpreadStageSettings) -> dict[str, Any]:
    """A deployment's options from its settings."""
    options: dict[str, Any] = {
        "max_ongoing_requests": stage.max_ongoing,
        "max_queued_requests": stage.max_queued,
        "backpressure_config": BackpressureConfig(status_code=429, retry_after_s=2),
        "health_check_period_s": HEALTH_CHECK_S,
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
            "target_ongoing_requests": max(stage.max_ongoing // 2, 1),
        }
    else:
        options["num_replicas"] = stage.min_replicas
    return options


def deployment(
    stage: Any, name: str, chosen: SpreadStageSettings, *arguments: Any, **options: Any
) -> Any:
    """The stage's class as a deployment bound to its arguments."""
    wrapped: Any = ray_serve.deployment(stage)
    return wrapped.options(name=name, **stage_options(chosen), **options).bind(*arguments)


def one_for_all(stage: Any, name: str, pool: str, *arguments: Any) -> Any:
    """A deployment of one replica for the whole graph, which only waits for others."""
    wrapped: Any = ray_serve.deployment(stage)
    options = {"num_replicas": 1, "max_ongoing_requests": 1000}
    actor = {"num_cpus": 0, **in_pool(pool)}
    return wrapped.options(name=name, ray_actor_options=actor, **options).bind(*arguments)


def build_app(settings: Settings) -> Any:
    """The Serve application over the published version of `settings.index.path`."""
    manifest = open_manifest(settings)
    stages = settings.serve
    facts = (settings, manifest)
    # Beside the gateways, where the batches' folder is.
    pool = stages.gateway.pool
    following = (*facts, one_for_all(Lease, "Turns", pool))
    encoder = deployment(Encoder, "Encoder", stages.encoder, *facts)
    bound = {
        "expander": deployment(Expander, "Expander", stages.expander, *following),
        "encoder": encoder,
        "pubmed": one_for_all(Online, "PubMed", pool, settings.entrez),
        "writer": deployment(Writer, "Writer", stages.writer, *following, encoder),
    }
    if settings.reranker.is_stage:
        bound["reranker"] = deployment(Reranker, "Reranker", stages.reranker, settings)
    shards = [
        deployment(Shard, f"Shard-{number:04d}", stages.shard, *following, number)
        for number in range(len(manifest.shards))
    ]
    # A line of ours for each request says more than Serve's.
    logs = LoggingConfig(encoding="JSON", enable_access_log=False)
    gateway = ray_serve.ingress()(Gateway)
    batches = one_for_all(Batches, "Batches", pool, *facts, bound, shards)
    cluster = Cluster(RayMeters, metric_pages)
    arguments = (*facts, bound, shards, batches, cluster)
    return deployment(gateway, "Gateway", stages.gateway, *arguments, logging_config=logs)


def build(args: dict[str, str]) -> Any:
    """`serve run serve.app:build config=... index.path=...`, and RayService's import path.

    With `llm.kind: vllm` the model is the application of `serve.llm_app:build` beside it.
    """
    return build_app(read_arguments(args))


def deploy(settings: Settings) -> None:
    """Deploy the graph on the Ray of this session; returns at once, `/readyz` says when it
    is ready. HTTP is on serve.host:serve.port.
    """
    _run(build_app(settings), APP, "/", settings)


def deploy_llm(settings: Settings) -> None:
    """Deploy the language models' application, if the settings ask for one; returns at once."""
    if served_here(settings):
        _run(build_llm_app(settings), LLM_APP, None, settings)


def run_models(settings: Settings) -> None:
    """Serve the language models of the settings for a graph outside of Serve, and wait for them.

    Raises CiteRayError where one cannot start.
    """
    # Where this minute is over, the next line waits one more for the proxies.
    with contextlib.suppress(TimeoutError, ActorDiedError):
        ray_serve.start()
    try:
        ray_serve.run(build_llm_app(settings), name=MODELS_APP, route_prefix=None)
    except (RuntimeError, TimeoutError) as error:
        raise CiteRayError(f"a language model cannot start: {one_line(str(error))}") from error


def stop_models() -> None:
    """Take down what `run_models` serves."""
    ray_serve.delete(MODELS_APP)


def _run(app: Any, name: str, route_prefix: str | None, settings: Settings) -> None:
    # Both wait a minute, no more and no less, for proxies: on a busy machine one takes longer, or
    # another is started in its place. Who asks waits for the graph, and so for them, longer.
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
    """Take both applications down, the language model's own processes included.

    Questions at work are waited for, up to `drain_s` seconds, while new ones are refused.
    """
    running = ray_serve.status().applications
    if APP in running:
        with contextlib.suppress(RayServeException, RayError, TimeoutError):
            drained = ray_serve.get_app_handle(APP).broadcast("drain", drain_s)
            drained.results(timeout_s=drain_s + 1)
    # Where nothing was deployed there is no Serve, and to delete would raise over what went wrong.
    for name in (APP, LLM_APP):
        if name in running:
            ray_serve.delete(name)


def failure() -> str:
    """What a deployment that cannot start says of itself, or ""."""
    applications = ray_serve.status().applications
    return "; ".join(
        f"{name}: {status.message}"
        for application in (APP, LLM_APP)
        if application in applications
        for name, status in applications[application].deployments.items()
        if status.status in ("DEPLOY_FAILED", "UNHEALTHY") and status.message
    )
