"""Estimate the replicas that answer a load within a latency target.

A question passes its stages in sequence; each stage is an M/M/c queue (`planning.queueing`). The
95th percentile of a question is estimated as the sum of the 95th percentiles of its stages, which
in practice is an upper bound. A stage whose time was not measured gets its `min_replicas` and is
not part of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from cluster.settings.presets import load_system
from cluster.settings.settings import Settings
from cluster.settings.stages.serving import StageSettings
from planning.estimate_build import Size
from planning.figures import Figure
from planning.measure.coefficients import Coefficients, Point, typical_point
from planning.measure.fit import Line
from planning.queueing import (
    quantile_per_part,
    servers_for,
    service_mean,
    service_quantile,
    wait_quantile,
)

# Core seconds of a gateway for one question, by the number of shards (docs/benchmarks.md).
GATEWAY_SECONDS = Line(base=0.014, slope=0.00136)
# Number of cores that a GPU counts as when two ways to run a stage are compared.
CORES_A_GPU = 16


@dataclass(frozen=True, slots=True)
class Demand:
    """The ways to run a stage. A question needs replies from all its `parts`, such as shards.

    Each part has at least `least` replicas. Without `points`, the stage's time is unknown.
    """

    name: str
    points: tuple[Point, ...]
    parts: int = 1
    cpus: float = 1.0
    gpus: float = 0.0
    least: int = 1


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The replicas of each part of a stage, and its 95th percentiles in seconds, or NaN."""

    name: str
    parts: int
    replicas: int
    batch: int
    cpus: float
    gpus: float
    utilisation: Figure
    service: Figure
    wait: Figure

    @property
    def seconds(self) -> float:
        """95th percentile of the seconds that a question spends here, including waiting."""
        return self.service.value + self.wait.value

    @property
    def cores(self) -> float:
        """CPU cores of all replicas of all parts; a GPU counts as CORES_A_GPU."""
        return self.parts * self.replicas * (self.cpus + CORES_A_GPU * self.gpus)


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """The stages of a service. `p95` is the sum of the known stages.

    `in_flight` questions are in progress at a time if each takes `p95` (Little's law). `problem`
    says why the target cannot be met, or is empty.
    """

    stages: tuple[StagePlan, ...]
    p95: Figure
    in_flight: float
    problem: str

    @property
    def unknown(self) -> list[str]:
        """Names of the stages whose times were not measured."""
        return [s.name for s in self.stages if not s.service.known]

    @property
    def service_seconds(self) -> float:
        """Sum of the 95th percentiles of the known stages, without waiting."""
        return sum(s.service.value for s in self.stages if s.service.known)

    def stage(self, name: str) -> StagePlan | None:
        """Return the stage `name`, or None."""
        return next((s for s in self.stages if s.name == name), None)


def shard_point(found: Coefficients, size: Size) -> Point:
    """Return the time of all calls of one question to one shard."""
    s = found.serving
    median = (
        s.statistics_seconds
        + s.search_seconds(
            size.shards, size.shard_passages, size.shard_citations, size.longer(found)
        )
        # The citations to fetch are spread over the shards.
        + s.fetch_seconds / size.shards
    )
    return Point(concurrent=1, median_seconds=median, p95_seconds=median * s.shard_p95_over_median)


def _encoder_points(found: Coefficients, settings: Settings) -> tuple[Point, ...]:
    """Return the encoder's times, assuming that a question is as long as a measured document."""
    stage, gpu = settings.serve.encoder, found.gpu
    if not stage.gpus or found.machine.device != "cpu":
        return found.serving.encode
    rates = gpu.encoder_documents_per_s if gpu else {}
    return tuple(typical_point(n, n / rates[n]) for n in sorted(rates) if n <= stage.batch)


def _reranker_points(found: Coefficients, settings: Settings) -> tuple[Point, ...]:
    s, stage, gpu = found.serving, settings.serve.reranker, found.gpu
    if not stage.gpus or found.machine.device != "cpu":
        return s.rerank
    each = s.rerank_pairs / gpu.cross_encoder_pairs_per_s if gpu else 0.0
    sizes = dict.fromkeys((1, stage.batch)) if each else ()
    return tuple(typical_point(n, n * each) for n in sizes)


def _expander_points(found: Coefficients, settings: Settings) -> tuple[Point, ...]:
    """Return the expander's time, of a vocabulary on CPUs or of a transformer.

    For a transformer on a GPU, the time is an upper bound: that of the smallest measured batch of
    documents of an encoder that is at least as large.
    """
    on_cpu = settings.recogniser.kind == "vocabulary" or not settings.serve.expander.gpus
    if on_cpu or found.machine.device != "cpu":
        return found.serving.expand
    rates = found.gpu.encoder_documents_per_s if found.gpu else {}
    return tuple(typical_point(1, size / rates[size]) for size in sorted(rates)[:1])


def demands(found: Coefficients, settings: Settings, size: Size, path: str) -> list[Demand]:
    """Return the stages of a search or an answer, in order."""
    s, serve, system = found.serving, settings.serve, load_system(settings.serve.system)
    on_gpu = found.machine.device != "cpu"
    # The measured times hold only for at least as many cores as threads were measured.
    threads = 1.0 if on_gpu else float(found.encoder_threads)

    def model_stage(name: str, points: tuple[Point, ...], threads: float = threads) -> Demand:
        stage: StageSettings = getattr(serve, name)
        cpus = stage.cpus if stage.gpus else max(stage.cpus, threads)
        return Demand(name, points, cpus=cpus, gpus=stage.gpus, least=stage.min_replicas)

    wanted = [
        Demand("gateway", (typical_point(1, GATEWAY_SECONDS.at(size.shards)),),
               cpus=serve.gateway.cpus or 1.0, least=serve.gateway.min_replicas),
        model_stage("encoder", _encoder_points(found, settings)),
        Demand("shard", (shard_point(found, size),), size.shards, least=serve.shard.min_replicas),
    ]  # fmt: skip
    if system.expand:
        wanted.insert(1, model_stage("expander", _expander_points(found, settings), 1.0))
    # With stored token vectors, the shards do the late interaction.
    stored = settings.index.token_codec is not None
    if system.rerank.depth and (settings.reranker.is_stage or not stored):
        wanted.append(model_stage("reranker", _reranker_points(found, settings)))
    wanted += _asked_models(s.llm, settings, path)
    if path == "answer":
        wanted.append(model_stage("writer", ()))
    return wanted


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A language model that the cluster serves: "llm" for the writer, or "llm-ROLE".

    `cpus` and `gpus` are those of one replica, including tensor parallelism.
    """

    name: str
    stage: StageSettings
    cpus: float
    gpus: float


def served_models(settings: Settings, *, judge: bool = False) -> list[ServedModel]:
    """Return the models that vLLM serves: writer, rewriters and ranker, or only the judge."""
    roles = settings.models.roles()
    chosen = {f"llm-{name}": role for name, role in roles.items() if (name == "judge") == judge}
    models = chosen if judge else {"llm": settings.llm, **chosen}
    found = []
    for name, model in models.items():
        stage = getattr(model, "stage", None) or settings.serve.llm
        if model.kind == "vllm":
            parts = model.tensor_parallel
            cpus = max(stage.cpus, 1.0) * parts
            found.append(ServedModel(name, stage, cpus, stage.gpus * parts))
    return found


def _asked_models(points: tuple[Point, ...], settings: Settings, path: str) -> Iterator[Demand]:
    """Yield the language models that a question calls, each as fast as the measured one."""
    asks_roles = load_system(settings.serve.system).asks_model
    if path == "answer" and settings.llm.kind == "url":
        yield Demand("llm", points)
    for m in served_models(settings):
        if path == "answer" if m.name == "llm" else asks_roles:
            yield Demand(m.name, points, cpus=m.cpus, gpus=m.gpus, least=m.stage.min_replicas)


def _service(demand: Demand, point: Point) -> Figure:
    q = quantile_per_part(demand.parts)
    value = service_quantile(point.median_seconds, point.p95_seconds, q)
    return Figure(
        f"{demand.name} service", value, "seconds",
        "lognormal quantile q of median_seconds and p95_seconds",
        {"median_seconds": point.median_seconds, "p95_seconds": point.p95_seconds, "q": q,
         "requests_at_once": point.concurrent},
    )  # fmt: skip


def _stage(demand: Demand, point: Point, service: Figure, qps: float, budget_s: float) -> StagePlan:
    q = quantile_per_part(demand.parts)
    mean = service_mean(point.median_seconds, point.p95_seconds)
    # A replica with several concurrent requests counts as several servers.
    needed = servers_for(qps, mean, budget_s, q)
    replicas = max(math.ceil(needed / point.concurrent), demand.least)
    servers = replicas * point.concurrent
    inputs = {"questions_per_s": qps, "mean_seconds": mean, "servers": servers}
    return StagePlan(
        demand.name,
        demand.parts,
        replicas,
        point.concurrent,
        demand.cpus,
        demand.gpus,
        Figure(f"{demand.name} utilisation", qps * mean / servers, "",
               "questions_per_s x mean_seconds / servers", inputs),
        service,
        Figure(f"{demand.name} wait", wait_quantile(servers, qps, mean, q), "seconds",
               "M/M/c: ln(ErlangC / (1 - q)) / (servers / mean_seconds - questions_per_s)",
               {**inputs, "q": q, "wait_budget_seconds": min(budget_s, 1e9)}),
    )  # fmt: skip


def _unknown(demand: Demand) -> StagePlan:
    """Return the plan of a stage whose time was not measured."""
    nothing = (Figure(f"{demand.name} {of}", math.nan, "seconds", "not measured")
               for of in ("utilisation", "service", "wait"))  # fmt: skip
    return StagePlan(demand.name, demand.parts, demand.least, 1, demand.cpus, demand.gpus, *nothing)


def _plan_points(
    wanted: Sequence[Demand], points: Sequence[Point | None], qps: float, p95_s: float
) -> ServingPlan:
    """Plan one way to run each stage, and share the rest of the target as waiting time."""
    services = [_service(d, p) if p else None for d, p in zip(wanted, points, strict=True)]
    together = sum(s.value for s in services if s)
    slack = p95_s - together
    share = slack / together if slack > 0 else math.inf
    stages = tuple(
        _stage(d, p, s, qps, s.value * share) if p and s else _unknown(d)
        for d, p, s in zip(wanted, points, services, strict=True)
    )
    known = [s for s in stages if s.service.known]
    p95 = Figure.total("p95 of a question", (f for s in known for f in (s.service, s.wait)))
    problem = ""
    if slack <= 0:
        slowest = max(known, key=lambda s: s.service.value)
        problem = (
            f"p95 of {p95_s:g} s cannot be met: without any waiting the stages take "
            f"{together:.3g} s, of which {slowest.name} {slowest.service.value:.3g} s"
        )
    return ServingPlan(stages, p95, qps * p95.value, problem)


def plan_serving(
    found: Coefficients, settings: Settings, size: Size, qps: float, p95_s: float, path: str
) -> ServingPlan:
    """Return the plan with the fewest cores that answers `qps` questions per second.

    Its 95th percentile is at most `p95_s`. If that is impossible, the plan has the lowest latency
    and states the problem.
    """
    wanted = demands(found, settings, size, path)
    plans = [
        _plan_points(wanted, points, qps, p95_s)
        for points in product(*(d.points or (None,) for d in wanted))
    ]
    meeting = [plan for plan in plans if not plan.problem]
    if meeting:
        return min(meeting, key=lambda plan: (sum(s.cores for s in plan.stages), plan.p95.value))
    return min(plans, key=lambda plan: plan.service_seconds)
