"""Plan shards, replicas, nodes, disk, hours and cost for a corpus and a load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cluster.index.cagra import FEWEST_ROWS, gpu_bytes
from cluster.settings.limits import limit_problems, questions_at_once
from cluster.settings.settings import Settings
from planning.emit import planned_settings
from planning.estimate_build import (
    Fleet,
    Size,
    artefact_bytes,
    build_phases,
    gpu_hours,
    on_gpus,
    process_memory,
    replica_memory,
    update_seconds,
)
from planning.estimate_serving import ServingPlan, plan_serving, served_models
from planning.figures import Figure
from planning.measure.coefficients import SPREAD, Coefficients, differences
from planning.place_workers import (
    USABLE_MEMORY,
    Ask,
    WorkerGroup,
    build_group,
    fleet_for,
    serving_groups,
    shard_tasks_a_node,
)
from planning.queueing import MAX_UTILISATION
from planning.units import format_bytes

HOURS_A_MONTH = 730.0
# Node groups that run all the time.
SERVING = ("retrieval", "models", "llm")
# Name of the memory of a GPU among the unknown values of a plan.
GPU_MEMORY = "memory of a GPU"


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. `problems` say why it is not feasible.

    `unknown` names the missing values without which the plan cannot tell whether it is feasible.
    """

    ask: Ask
    size: Size
    artefacts: tuple[Figure, ...]
    disk: tuple[Figure, ...]
    memory: tuple[Figure, ...]
    phases: tuple[Figure, ...]
    build: Figure
    gpu_hours: Figure | None
    update: Figure
    serving: ServingPlan
    groups: tuple[WorkerGroup, ...]
    fleet: Fleet
    costs: tuple[Figure, ...]
    problems: tuple[str, ...]
    unknown: tuple[str, ...]
    assumptions: tuple[str, ...]


def _memory_problems(found: Coefficients, settings: Settings, size: Size, ask: Ask) -> list[str]:
    """Return a description of each process that does not fit on a node or its GPU."""
    processes = process_memory(found, settings, size)
    needs = {f"one {f.name}": f.value for f in [*processes, replica_memory(found, size)]}
    at_once = min(size.shards, shard_tasks_a_node(settings, ask))
    needs[f"{at_once} shard tasks at once"] = at_once * needs.pop("one shard task")
    usable = USABLE_MEMORY * ask.node_memory
    available = (
        f"the {format_bytes(usable)} that a node of {format_bytes(ask.node_memory)} has for it"
    )
    problems = [
        f"{name}: {format_bytes(need)}, more than {available}"
        for name, need in needs.items()
        if need > usable
    ]
    graphs = graph_problem(found, settings, size, ask)
    return [*problems, graphs] if graphs else problems


def choose_shards(found: Coefficients, settings: Settings, ask: Ask) -> int:
    """Return the smallest power of two that fits a node's memory and meets the percentile.

    The memory of a build must fit too: a node builds several shards at once. If no number meets the
    percentile, return the smallest within 10% of the best latency.
    """
    if ask.shards is not None:
        return ask.shards
    near: list[tuple[float, int]] = []
    for exponent in range(MAX_SHARDS.bit_length()):
        size = Size.of(found, settings, ask.citations, 2**exponent)
        if _memory_problems(found, settings, size, ask):
            continue
        serving = plan_serving(found, settings, size, ask.qps, ask.p95_s, ask.path)
        if not serving.problem:
            return size.shards
        near.append((serving.service_seconds, size.shards))
    if not near:
        return MAX_SHARDS
    nearest = min(near)[0]
    return next(shards for seconds, shards in near if seconds <= 1.1 * nearest)


def _costs(
    ask: Ask, build_s: float, hours: Figure | None, groups: Sequence[WorkerGroup], nodes: int
) -> tuple[Figure, ...]:
    if ask.node_price is None:
        return ()
    unit, node, gpu = "in your currency", ask.node_price, ask.gpu_price or 0.0
    priced = "node_hours x price_of_a_node_hour + gpu_hours x price_of_a_gpu_hour"
    build = nodes * build_s / 3600, hours.value if hours else 0.0
    served = [g for g in groups if g.name in SERVING]
    held, gpus = sum(g.nodes for g in served), sum(g.nodes * g.gpus for g in served)
    month = HOURS_A_MONTH * held, HOURS_A_MONTH * gpus
    answer = held / (3600 * ask.qps), gpus / (3600 * ask.qps)
    return tuple(
        Figure.of(name, unit, priced, node_hours, node, gpu_hours, gpu)
        for name, (node_hours, gpu_hours) in (
            ("a build", build),
            ("serving, a month", month),
            (f"a question, at {ask.qps:g} per second", answer),
        )
    )


def _disk(found: Coefficients, artefacts: Sequence[Figure], ask: Ask) -> tuple[Figure, ...]:
    staging, *kept = artefacts
    version = Figure.total("index, one version", kept)
    each = found.corpus.source_bytes_per_citation
    return (
        version,
        Figure.of("index store", "bytes", "2 x version + staging", version.value, staging.value),
        Figure.of("downloads", "bytes", "citations x source_bytes_per_citation",
                  ask.citations, each),
    )  # fmt: skip


def _assumptions(
    found: Coefficients, settings: Settings, ask: Ask, size: Size, *, shipped: bool
) -> Iterator[str]:
    machine, corpus, gpu = found.machine, found.corpus, found.gpu
    made = "shipped with CiteRay" if shipped else "of this calibration"
    yield (
        f"coefficients {made}: measured {found.made[:10]} on {machine.words}, "
        f"load {machine.load:.1f}; sample of {corpus.sample_citations:,} citations, {corpus.words}"
    )
    if shipped:
        yield "they were measured on another machine: run again with --calibrate to measure yours"
    further = f"{size.shard_citations / corpus.sample_citations:,.0f} times the largest measured"
    yield f"a planned shard is {further}; docs/benchmarks.md compares plans with real builds"
    yield from (f"measured with other settings: {d}" for d in differences(found, settings))
    if size.dimensions != corpus.dimensions:
        yield (
            f"vectors have {size.dimensions} dimensions instead of the measured "
            f"{corpus.dimensions}: the times of graphs and dense search are assumed to be "
            "proportional to them"
        )
    if gpu:
        yield f"GPU coefficients of {gpu.device}; a question is assumed to be as long as a document"
    if settings.encoder.gpus or settings.index.build_gpus:
        yield "the memory of processes with a GPU is assumed, not measured"
    if ask.reply_s is not None:
        yield (
            f"a language model's reply is assumed to need {ask.reply_s:g} s with as many at once "
            "as "
            f"llm.max_concurrent, its p95 {SPREAD:g} times that: given, not measured"
        )
    if not found.serving.llm:
        words = "gets its min_replicas for any load, and is not part of p95"
        yield f"no language model was measured: each one that the cluster serves {words}"
    elif len(served_models(settings)) > 1:
        yield "rewriters and ranker are assumed to be as fast as the measured language model"
    if "generated" in corpus.words:
        vocabulary = "generated records have fewer distinct terms than PubMed's"
        yield f"{vocabulary}: --sample FILE measures real ones"
    busy = f"each an M/M/c queue at most {MAX_UTILISATION:.0%} busy"
    yield f"a question's p95 is the sum of its stages' ({ask.path}), {busy}"
    yield "searches read from memory: a node's memory holds its shards and its processes"
    usable = f"{USABLE_MEMORY:.0%} of a node's memory is for these processes"
    yield f"{usable}; its cores are as fast as those measured"


def make_plan(found: Coefficients, settings: Settings, ask: Ask, *, shipped: bool = False) -> Plan:
    """Return the plan for `ask` with `settings`, from measured coefficients."""
    size = Size.of(found, settings, ask.citations, choose_shards(found, settings, ask))
    serving = plan_serving(found, settings, size, ask.qps, ask.p95_s, ask.path)
    groups = serving_groups(found, settings, size, serving, ask)
    nodes = ask.nodes or sum(g.nodes for g in groups if g.name in SERVING)
    if (settings.encoder.gpus or settings.index.build_gpus) and not ask.gpu_nodes:
        # The settings build on GPUs, so every building node needs them.
        ask = replace(ask, gpu_nodes=nodes)
    fleet = fleet_for(found, settings, size, ask, nodes)
    artefacts = artefact_bytes(found, size)
    disk = _disk(found, artefacts, ask)
    memory = process_memory(found, settings, size)
    phases = build_phases(found, size, fleet)
    build = Figure.total("build", phases)
    hours = gpu_hours(settings, size, fleet)
    changed = Size.of(found, settings, ask.changed, size.shards)
    graphs = graph_memory(settings, size, ask)
    unknown_memory = graphs is not None and math.isnan(gpu_memory(found, ask))
    made = Plan(
        ask=replace(ask, shards=size.shards, nodes=nodes),
        size=size,
        artefacts=tuple(artefacts),
        disk=disk,
        memory=(*memory, replica_memory(found, size), *([graphs] if graphs else [])),
        phases=tuple(phases),
        build=build,
        gpu_hours=hours,
        update=update_seconds(found, changed, size, fleet),
        serving=serving,
        groups=(*groups, build_group(memory, fleet, ask, disk[1].value, size.shards)),
        fleet=fleet,
        costs=_costs(ask, build.value, hours, groups, nodes),
        problems=(),
        unknown=(*serving.unknown, *([GPU_MEMORY] if unknown_memory else [])),
        assumptions=tuple(_assumptions(found, settings, ask, size, shipped=shipped)),
    )  # fmt: skip
    problems = _memory_problems(found, settings, size, ask)
    problems += [serving.problem] if serving.problem else []
    planned = planned_settings(settings, made)
    # Report only once the contradictions that both the settings and the planned replicas cause.
    problems += limit_problems(settings) or limit_problems(planned)
    admitted = planned.serve.gateway.min_replicas * questions_at_once(planned)
    if serving.in_flight > admitted:
        problems.append(
            f"serve.http.at_once {planned.serve.http.at_once}: {serving.in_flight:.0f} questions "
            f"are in progress at a time, but the gateways process {admitted}"
        )
    return replace(made, problems=tuple(problems))


MAX_SHARDS = 4096
NAME = "graphs of one GPU"


def gpu_memory(found: Coefficients, ask: Ask) -> float:
    """Return the bytes of one GPU, given or measured; NaN if they are unknown."""
    return ask.gpu_memory or (found.gpu.memory_bytes if found.gpu else None) or math.nan


def graphs_at_once(settings: Settings, ask: Ask, shards: int) -> int:
    """Return how many graphs a GPU builds at a time, by `build_gpus` and the node's cores."""
    index = settings.index
    by_cpus = ask.node_cpus // index.build_threads // ask.gpus_per_node
    return max(min(int(1 / index.build_gpus + 1e-9), by_cpus, shards), 1)


def graph_memory(settings: Settings, size: Size, ask: Ask) -> Figure | None:
    """Return the memory of all graphs that a GPU builds at a time; None if CPUs build them."""
    if not on_gpus(settings.index, size):
        return None
    one = _one_graph(settings, size, size.shards)
    at_once = graphs_at_once(settings, ask, size.shards)
    return Figure.of(NAME, "bytes", "graphs_at_once x bytes_of_a_graph", at_once, one)


def _one_graph(settings: Settings, size: Size, shards: int) -> int:
    rows = math.ceil(size.passages / shards)
    return gpu_bytes(rows, size.dimensions, settings.index.hnsw_m)


def graph_problem(found: Coefficients, settings: Settings, size: Size, ask: Ask) -> str:
    """Return why CPUs would build the graphs, with the fewest shards that fit, or ""."""
    needed, memory = graph_memory(settings, size, ask), gpu_memory(found, ask)
    # The comparison is false if the memory is unknown.
    if needed is None or not needed.value > memory:
        return ""

    def fits(shards: int) -> bool:
        few = size.passages / shards < FEWEST_ROWS
        at_once = graphs_at_once(settings, ask, shards)
        return not few and at_once * _one_graph(settings, size, shards) <= memory

    fewest = next(filter(fits, range(1, MAX_SHARDS + 1)), None)
    mend = (
        f"at least {fewest} shards fit" if fewest
        else "no number of shards fits; set index.build_gpus to 0, or 1 for one graph at a time"
    )  # fmt: skip
    return (
        f"{NAME}: up to {format_bytes(needed.value)}, more than the {format_bytes(memory)} that it "
        f"has, so CPUs would build them; {mend}"
    )
