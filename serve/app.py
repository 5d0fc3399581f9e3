"""Ray Serve wiring of the question's path; only this and `serve.llm_app` import Ray.

    Gateway ─► Expander, Encoder, Shard-0000 … Shard-NNNN, Reranker, Writer ─► LanguageModel

Each stage is a deployment of its own, so each scales, batches and fails alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

import numpy as np
from ray import serve as ray_serve
from ray.exceptions import RayError
from ray.serve import RunTarget
from ray.serve.config import BackpressureConfig
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle
from ray.serve.schema import LoggingConfig, TracingConfig

from cluster.answer_settings import AnswerSettings
from cluster.errors import LLMError
from cluster.index.manifest import Manifest
from cluster.index.vectors import Vectors
from cluster.records import Answer, Entity, Evidence, Passage, Question, SearchResult
from cluster.settings import Settings, StageSettings, load_system
from serve.answer_batch import DOCUMENTS
from serve.answer_events import told
from serve.answer_question import QuestionAnswerer
from serve.batches.serve_jobs import ServedBatches
from serve.call_stages import HandleStages, HandleTurns, until_ready
from serve.choose_snippets import choose_snippets
from serve.follow_versions import StageVersion, follow_vocabulary
from serve.gateway import ClusterFigures, Gateway
from serve.index_stages import Expander, Shard
from serve.language_model import NO_MODEL, ChatModel, Message, Say
from serve.llm_app import LLM_APP, HandleChatModel, build_llm_app, read_arguments
from serve.load_stages import (
    load_encoder,
    load_reranker,
    load_writer,
    open_manifest,
    remote_model,
)
from serve.ray_meters import RayMeters, metric_pages
from serve.search_online import Online
from serve.stages import IndexFacts
from serve.take_turns import Lease
from serve.write_answer import WrittenAnswer

T = TypeVar("T")
APP = "citeray"
# How soon the replicas of a lost node are missed, and started where there is room.
HEALTH_CHECK_S = 3.0
# Threads of OpenMP that wait for work spin on a core that another stage could use: with 16 callers
# on 2 cores 2.0 questions a second, 2.7 without, for 5% of the reranker's time alone.
THREADS = {"OMP_WAIT_POLICY": "PASSIVE"}


async def in_thread(pool: Executor, work: Callable[..., T], *arguments: Any) -> T:
    """What `work` gives in a thread of `pool`; what still waits for one can be cancelled."""
    return await asyncio.get_running_loop().run_in_executor(pool, work, *arguments)


class Encoder:
    """Encodes the questions that arrive together in one batch."""

    def __init__(self, settings: Settings, manifest: Manifest) -> None:
        self._encoder = load_encoder(settings, manifest)
        # Torch keeps a team of threads, and memory, for each thread that ever called it.
        self._queries, self._passages = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._batched.set_max_batch_size(settings.serve.encoder.batch)

    @ray_serve.batch(max_batch_size=32, batch_wait_timeout_s=0.002)
    async def _batched(self, texts: list[str]) -> list[Vectors]:
        return list(await in_thread(self._queries, self._encoder.encode_queries, texts))

    async def encode(self, text: str) -> Vectors:
        vector: Vectors = await self._batched(text)
        return vector

    async def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return await in_thread(self._passages, self._encoder.encode, texts)

    async def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        choose = partial(choose_snippets, window=sentences)
        return await in_thread(self._passages, choose, question, evidence, self._encoder.encode)

    def ready(self) -> str:
        return "ready"


class Reranker:
    """Scores the candidates of questions that arrive together in one batch."""

    def __init__(self, settings: Settings, manifest: Manifest) -> None:
        late = settings.reranker.kind == "late-interaction"
        self._reranker = load_reranker(settings, load_encoder(settings, manifest) if late else None)
        self._thread = ThreadPoolExecutor(1)
        self._batched.set_max_batch_size(settings.serve.reranker.batch)

    @ray_serve.batch(max_batch_size=8, batch_wait_timeout_s=0.002)
    async def _batched(self, requests: list[tuple[str, list[str]]]) -> list[np.ndarray]:
        pairs = [(question, text) for question, texts in requests for text in texts]
        scores = await in_thread(self._thread, self._reranker.score_pairs, pairs)
        ends = np.cumsum([len(texts) for _, texts in requests])
        return [
            scores[end - len(texts) : end] for end, (_, texts) in zip(ends, requests, strict=True)
        ]

    async def rerank(self, question: str, texts: Sequence[str]) -> np.ndarray:
        scores: np.ndarray = await self._batched((question, list(texts)))
        return scores

    def ready(self) -> str:
        return "ready"


class Writer:
    def __init__(
        self,
        settings: Settings,
        manifest: Manifest,
        turns: DeploymentHandle,
        encoder: DeploymentHandle,
    ) -> None:
        self._model: ChatModel | None = (
            HandleChatModel(settings.llm.model_id)
            if settings.llm.kind == "vllm"
            else remote_model(settings)
        )
        deadline_s = settings.serve.encoder.deadline_s

        def encode(texts: Sequence[str]) -> Vectors:
            # The writer compares sentences in threads, where a blocking call is right.
            response = encoder.encode_passages.remote(list(texts))
            vectors: Vectors = response.result(timeout_s=deadline_s)
            return vectors

        def recognise(text: str) -> list[Entity]:
            return self._follower.current.value.entities(text)

        self._follower = follow_vocabulary(settings, manifest)
        self._follower.follow(settings.serve.follow_s, HandleTurns(turns))
        self._writer = load_writer(settings, encode, recognise, self._model)

    async def write(
        self, question: Question, evidence: Sequence[Evidence], style: AnswerSettings
    ) -> WrittenAnswer:
        return await self._writer.write(question, evidence, style)

    async def write_aloud(
        self, question: Question, evidence: Sequence[Evidence], style: AnswerSettings
    ) -> AsyncIterator[str | WrittenAnswer]:
        """The pieces of what the model says, then the answer."""

        async def work(say: Say) -> str | WrittenAnswer:
            return await self._writer.write(question, evidence, style, say)

        async with aclosing(told(work)) as parts:
            async for part in parts:
                yield part

    async def chat(self, messages: Sequence[Message], options: Mapping[str, Any]) -> str:
        """See `ChatModel.chat`."""
        if self._model is None:
            raise LLMError(NO_MODEL)
        return await self._model.chat(messages, **options)

    def version(self) -> StageVersion:
        return self._follower.state()

    async def ready(self) -> str:
        """Ready once the model has said one token; a remote one is not waited for."""
        if isinstance(self._model, HandleChatModel):
            greeting: Message = {"role": "user", "content": "Hello"}
            await self._model.chat([greeting], max_tokens=1, temperature=0.0)
        return "ready"


class Batches(ServedBatches):
    """Works on batches beside the gateway, so that who waits for an answer never waits for them."""

    # Serve awaits it, on the loop that requests run on.
    async def __init__(  # type: ignore[misc]
        self,
        settings: Settings,
        manifest: Manifest,
        stages: Mapping[str, DeploymentHandle],
        shards: Sequence[DeploymentHandle],
    ) -> None:
        facts = IndexFacts.of(manifest, settings.index.bm25_k1, settings.index.bm25_b)
        graph = HandleStages(stages, shards)
        limit = settings.llm.evidence_characters
        answerer = QuestionAnswerer(graph, facts, settings.serve, limit)

        async def ask(question: Question, system: str, answers: bool) -> Answer | SearchResult:
            asked = (question, load_system(system), DOCUMENTS, True)
            return await (answerer.answer(*asked) if answers else answerer.search(*asked))

        async def ready() -> None:
            # A stage that still loads would cost each answer what `degraded` says.
            await asyncio.gather(*map(until_ready, graph.handles().values()))

        super().__init__(settings.serve.batches, ask, ready)
        self.begin()


def stage_options(stage: StageSettings) -> dict[str, Any]:
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
        },
    }
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
    stage: Any, name: str, chosen: StageSettings, *arguments: Any, **options: Any
) -> Any:
    """The stage's class as a deployment bound to its arguments."""
    wrapped: Any = ray_serve.deployment(stage)
    return wrapped.options(name=name, **stage_options(chosen), **options).bind(*arguments)


def one_for_all(stage: Any, name: str, *arguments: Any) -> Any:
    """A deployment of one replica for the whole graph, which only waits for others."""
    wrapped: Any = ray_serve.deployment(stage)
    options = {"num_replicas": 1, "max_ongoing_requests": 1000}
    actor = {"num_cpus": 0}
    return wrapped.options(name=name, ray_actor_options=actor, **options).bind(*arguments)


def build_app(settings: Settings) -> Any:
    """The Serve application over the published version of `settings.index.path`."""
    manifest = open_manifest(settings)
    stages = settings.serve
    facts = (settings, manifest)
    following = (*facts, one_for_all(Lease, "Turns"))
    encoder = deployment(Encoder, "Encoder", stages.encoder, *facts)
    bound = {
        "expander": deployment(Expander, "Expander", stages.expander, *following),
        "encoder": encoder,
        "reranker": deployment(Reranker, "Reranker", stages.reranker, *facts),
        "pubmed": one_for_all(Online, "PubMed", settings.entrez),
        "writer": deployment(Writer, "Writer", stages.writer, *following, encoder),
    }
    shards = [
        deployment(Shard, f"Shard-{number:04d}", stages.shard, *following, number)
        for number in range(len(manifest.shards))
    ]
    # A line of ours for each request says more than Serve's.
    logs = LoggingConfig(encoding="JSON", enable_access_log=False)
    gateway = ray_serve.ingress()(Gateway)
    batches = one_for_all(Batches, "Batches", *facts, bound, shards)
    figures = ClusterFigures(RayMeters, metric_pages)
    arguments = (*facts, bound, shards, batches, figures)
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
    """Deploy the language model's application, if the settings ask for one; returns at once."""
    if settings.llm.kind == "vllm":
        _run(build_llm_app(settings), LLM_APP, None, settings)


def _run(app: Any, name: str, route_prefix: str | None, settings: Settings) -> None:
    ray_serve.start(
        http_options={"host": settings.serve.host, "port": settings.serve.port},
        tracing_config=TracingConfig(
            enabled=settings.serve.trace_share > 0,
            exporter_import_path="serve.trace_requests:span_processors",
            sampling_ratio=settings.serve.trace_share,
        ),
    )
    target = RunTarget(app, name=name, route_prefix=route_prefix)
    ray_serve.run_many([target], wait_for_applications_running=False)


def stop(drain_s: float) -> None:
    """Take both applications down, the language model's own processes included.

    Questions at work are waited for, up to `drain_s` seconds, while new ones are refused.
    """
    if APP in ray_serve.status().applications:
        with contextlib.suppress(RayServeException, RayError, TimeoutError):
            drained = ray_serve.get_app_handle(APP).broadcast("drain", drain_s)
            drained.results(timeout_s=drain_s + 1)
    for name in (APP, LLM_APP):
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
