"""Plan shards, replicas, nodes, disk, hours and cost for a corpus and a load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cluster.settings.settings import Settings
from planning.error_bar import ErrorBar
from planning.estimate_build import (
    Fleet,
    Size,
    artefact_bytes,
    build_phases,
    gpu_hours,
    process_memory,
    replica_memory,
    shard_bytes,
    update_seconds,
)
from planning.estimate_serving import (
    GRAPH_SECONDS,
    ServingPlan,
    plan_serving,
    served_models,
)
from planning.figures import Figure
from planning.measure.coefficients import REPLY_SPREAD, Coefficients, differences
from planning.place_workers import (
    USABLE_MEMORY,
    Ask,
    WorkerGroup,
    build_group,
    fleet_for,
    serving_groups,
)
from planning.queueing import MAX_UTILISATION
from planning.units import format_bytes

MAX_SHARDS = 4096
HOURS_A_MONTH = 730.0
# Node groups that run all the time.
SERVING = ("retrieval", "models", "llm")


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. `problems` say why it is not feasible; `error_bar` is None without a check."""

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
    shard_start: Figure
    groups: tuple[WorkerGroup, ...]
    fleet: Fleet
    costs: tuple[Figure, ...]
    problems: tuple[str, ...]
    assumptions: tuple[str, ...]
    error_bar: ErrorBar | None


def _memory_problems(found: Coefficients, settings: Settings, size: Size, ask: Ask) -> list[str]:
    """Return a description of each process that does not fit on a node."""
    processes = process_memory(found, size, settings.index.training_vectors)
    needs = {f"one {f.name}": f.value for f in [*processes, replica_memory(found, size)]}
    # Ray may run as many tasks on a node as it has cores.
    at_once = min(size.shards, ask.node_cpus)
    needs[f"{at_once} shard tasks at once"] = at_once * needs.pop("one shard task")
    usable = USABLE_MEMORY * ask.node_memory
    told = f"the {format_bytes(usable)} that a node of {format_bytes(ask.node_memory)} has for it"
    return [
        f"{name}: {format_bytes(need)}, more than {told}"
        for name, need in needs.items()
        if need > usable
    ]


def choose_shards(found: Coefficients, settings: Settings, ask: Ask) -> int:
    """Return the smallest power of two that fits a node's memory and meets the percentile.

    The memory of a build must fit too: a node builds as many shards at once as it has cores. If no
    number meets the percentile, return the smallest within 10% of the best latency.
    """
    if ask.shards is not None:
        return ask.shards
    near: list[tuple[float, int]] = []
    for exponent in range(MAX_SHARDS.bit_length()):
        size = Size.of(found, ask.citations, 2**exponent)
        if _memory_problems(found, settings, size, ask):
            continue
        serving = plan_serving(found, settings, size, ask.qps, ask.p95_s, ask.path)
        if not serving.problem:
            return size.shards
        near.append((sum(s.service.value for s in serving.stages), size.shards))
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
    machine, corpus = found.machine, found.corpus
    made = "shipped with CiteRay" if shipped else "of this calibration"
    yield (
        f"coefficients {made}: measured {found.made[:10]} on {machine.words}, "
        f"load {machine.load:.1f}; sample of {corpus.sample_citations:,} citations, {corpus.words}"
    )
    if shipped:
        yield "they are not of your machine: run again with --calibrate for yours"
    yield found.checked.words if found.checked else "no error bars: --check measures them"
    further = size.shard_citations / corpus.sample_citations
    yield f"a planned shard is {further:,.0f} times the largest that was measured"
    yield from (f"measured with other settings: {d}" for d in differences(found, settings))
    if machine.device == "cpu":
        yield "no GPU was measured: encoding is planned on CPUs, GPU hours are not known"
    if ask.reply_s is not None:
        yield (
            f"a language model's reply is taken to need {ask.reply_s:g} s with as many at once as "
            f"llm.max_concurrent, its p95 {REPLY_SPREAD:g} times that: given, not measured"
        )
    if not found.serving.llm:
        words = "has its min_replicas, whatever the load, and no part in p95"
        yield f"no language model was measured: each that the cluster serves {words}"
    elif len(served_models(settings)) > 1:
        yield "rewriters and ranker are taken to be as fast as the language model that was measured"
    if "generated" in corpus.words:
        vocabulary = "generated records have fewer kinds of terms than PubMed's"
        yield f"{vocabulary}: --sample FILE measures real ones"
    yield (
        f"a question's p95 is the sum of its stages' ({ask.path}), each an M/M/c queue at most "
        f"{MAX_UTILISATION:.0%} busy; {GRAPH_SECONDS * 1000:.0f} ms for HTTP and handles"
    )
    yield "searches find their shard in memory: nodes hold all of it beside their processes"
    yield (
        f"{USABLE_MEMORY:.0%} of a node's memory is for these processes; its cores are as fast "
        "as those measured"
    )


def make_plan(found: Coefficients, settings: Settings, ask: Ask, *, shipped: bool = False) -> Plan:
    """Return the plan for `ask` with `settings`, from measured coefficients."""
    size = Size.of(found, ask.citations, choose_shards(found, settings, ask))
    serving = plan_serving(found, settings, size, ask.qps, ask.p95_s, ask.path)
    groups = serving_groups(found, settings, size, serving, ask)
    nodes = ask.nodes or sum(g.nodes for g in groups if g.name in SERVING)
    if settings.encoder.gpus and not ask.gpu_nodes:
        # The settings encode on GPUs, so every node that builds needs them.
        ask = replace(ask, gpu_nodes=nodes)
    fleet = fleet_for(found, settings, ask, nodes)
    artefacts = artefact_bytes(found, size)
    disk = _disk(found, artefacts, ask)
    memory = process_memory(found, size, settings.index.training_vectors)
    phases = build_phases(found, size, fleet)
    build = Figure.total("build", phases)
    hours = gpu_hours(found, size)
    problems = _memory_problems(found, settings, size, ask)
    return Plan(
        ask=replace(ask, shards=size.shards, nodes=nodes),
        size=size,
        artefacts=tuple(artefacts),
        disk=disk,
        memory=(*memory, replica_memory(found, size)),
        phases=tuple(phases),
        build=build,
        gpu_hours=hours,
        update=update_seconds(found, size, ask.changed, fleet),
        serving=serving,
        shard_start=Figure.of("a shard's checksums", "seconds", "bytes x verify_seconds_per_byte",
                              shard_bytes(found, size), found.building.verify_seconds_per_byte),
        groups=(*groups, build_group(memory, fleet, ask, disk[1].value, size.shards)),
        fleet=fleet,
        costs=_costs(ask, build.value, hours, groups, nodes),
        problems=(*problems, serving.problem) if serving.problem else tuple(problems),
        assumptions=tuple(_assumptions(found, settings, ask, size, shipped=shipped)),
        error_bar=found.checked,
    )  # fmt: skip
