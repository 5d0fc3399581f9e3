"""A plan: shards, replicas, nodes, disk, hours and cost, for what is asked of a machine park."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cluster.settings import Settings
from planning.coefficients import Coefficients, differences
from planning.estimate_build import (
    Fleet,
    Size,
    artefact_bytes,
    build_phases,
    gpu_hours,
    process_memory,
    shard_bytes,
    total,
    update_seconds,
)
from planning.estimate_serving import GRAPH_SECONDS, ServingPlan, plan_serving
from planning.figures import Figure
from planning.place_workers import (
    USABLE_MEMORY,
    Ask,
    WorkerGroup,
    build_group,
    fleet_for,
    llm_groups,
    model_group,
    replica_memory,
    retrieval_group,
)
from planning.queueing import MAX_UTILISATION
from planning.units import format_bytes

MAX_SHARDS = 4096
HOURS_A_MONTH = 730.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Every figure with its formula. `problems` are why the plan would not do."""

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


def _memory_needs(
    found: Coefficients, settings: Settings, size: Size, ask: Ask
) -> dict[str, float]:
    """Bytes of what must fit one node, by name."""
    limit = settings.index.training_vectors
    needs = {f"one {f.name}": f.value for f in process_memory(found, size, limit)}
    needs["one shard replica"] = replica_memory(found, size).value
    # Ray may give a node as many tasks as it has cores.
    at_once = min(size.shards, ask.node_cpus)
    needs[f"{at_once} shard tasks at once"] = at_once * needs.pop("one shard task")
    return needs


def _memory_problems(found: Coefficients, settings: Settings, size: Size, ask: Ask) -> list[str]:
    usable = USABLE_MEMORY * ask.node_memory
    told = f"the {format_bytes(usable)} that a node of {format_bytes(ask.node_memory)} has for it"
    return [
        f"{name}: {format_bytes(need)}, more than {told}"
        for name, need in _memory_needs(found, settings, size, ask).items()
        if need > usable
    ]


def choose_shards(found: Coefficients, settings: Settings, ask: Ask) -> int:
    """The fewest shards, a power of two, that fit a node's memory and meet the percentile.

    Building them must fit too: a node builds as many at once as it has cores.

    Where none meets it, the fewest that fit and come within a tenth of the nearest.
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


def _costs(ask: Ask, build: Figure, hours: Figure | None, groups: list[WorkerGroup], nodes: int
           ) -> tuple[Figure, ...]:  # fmt: skip
    if ask.node_price is None:
        return ()
    gpu_price = ask.gpu_price or 0.0
    node_hours = nodes * build.value / 3600
    gpu_cost = hours.value * gpu_price if hours else 0.0
    serving_nodes = sum(g.nodes for g in groups)
    serving_gpus = sum(g.nodes * g.gpus for g in groups)
    month = HOURS_A_MONTH * (serving_nodes * ask.node_price + serving_gpus * gpu_price)
    prices = {"price_of_a_node_hour": ask.node_price, "price_of_a_gpu_hour": gpu_price}
    return (
        Figure("a build", node_hours * ask.node_price + gpu_cost, "in your currency",
               "node_hours x price_of_a_node_hour + gpu_hours x price_of_a_gpu_hour",
               {"node_hours": node_hours, "gpu_hours": hours.value if hours else 0.0, **prices}),
        Figure("serving, a month", month, "in your currency",
               "hours x (nodes x price_of_a_node_hour + gpus x price_of_a_gpu_hour)",
               {"hours": HOURS_A_MONTH, "nodes": serving_nodes, "gpus": serving_gpus, **prices}),
    )  # fmt: skip


def _disk(found: Coefficients, artefacts: tuple[Figure, ...], ask: Ask) -> tuple[Figure, ...]:
    named = {f.name: f.value for f in artefacts}
    staging = named.pop("staging")
    index = sum(named.values())
    each = found.corpus.source_bytes_per_citation
    return (
        Figure("index, one version", index, "bytes", " + ".join(named), named),
        Figure("index store", 2 * index + staging, "bytes", "2 x version + staging",
               {"version": index, "staging": staging}),
        Figure("downloads", ask.citations * each, "bytes",
               "citations x source_bytes_per_citation",
               {"citations": ask.citations, "source_bytes_per_citation": each}),
    )  # fmt: skip


def _assumptions(
    found: Coefficients, settings: Settings, ask: Ask, size: Size, shipped: bool
) -> list[str]:
    machine, corpus = found.machine, found.corpus
    made = "shipped with CiteRay" if shipped else "of this calibration"
    told = [
        f"coefficients {made}: measured {found.made[:10]} on {machine.words}, "
        f"load {machine.load:.1f}; sample of {corpus.sample_citations:,} citations, {corpus.words}",
    ]
    if shipped:
        told.append("they are not of your machine: run again with --calibrate for yours")
    further = size.shard_citations / corpus.sample_citations
    told.append(f"a planned shard is {further:,.0f} times the largest that was measured")
    told += [f"measured with other settings: {d}" for d in differences(found, settings)]
    if machine.device == "cpu":
        told.append("no GPU was measured: encoding is planned on CPUs, GPU hours are not known")
    if not found.serving.llm:
        told.append("the language model was not measured: none is in the plan")
    vocabulary = "generated records have fewer kinds of terms than PubMed's"
    if "generated" in corpus.words:
        told.append(f"{vocabulary}: --sample FILE measures real ones")
    return [
        *told,
        f"a question's p95 is the sum of its stages' ({ask.path}), each an M/M/c queue at most "
        f"{MAX_UTILISATION:.0%} busy; {GRAPH_SECONDS * 1000:.0f} ms for HTTP and handles",
        "searches find their shard in memory: nodes hold all of it beside their processes",
        f"{USABLE_MEMORY:.0%} of a node's memory is for these processes; its cores are as fast "
        "as those measured",
    ]


def make_plan(found: Coefficients, settings: Settings, ask: Ask, *, shipped: bool = False) -> Plan:
    """The plan for `ask` by `settings`, from what was measured."""
    size = Size.of(found, ask.citations, choose_shards(found, settings, ask))
    serving = plan_serving(found, settings, size, ask.qps, ask.p95_s, ask.path)
    groups = [
        retrieval_group(found, size, serving, ask),
        model_group(found, settings, serving, ask),
        *llm_groups(serving, ask, settings),
    ]
    nodes = ask.nodes or sum(g.nodes for g in groups)
    fleet = fleet_for(found, settings, ask, nodes)
    artefacts = tuple(artefact_bytes(found, size))
    disk = _disk(found, artefacts, ask)
    memory = tuple(process_memory(found, size, settings.index.training_vectors))
    phases = tuple(build_phases(found, size, fleet))
    build = total("build", phases)
    hours = gpu_hours(found, size)
    each = found.building.verify_seconds_per_byte
    mapped = shard_bytes(found, size)
    problems = [*_memory_problems(found, settings, size, ask), *filter(None, [serving.problem])]
    return Plan(
        ask=replace(ask, shards=size.shards, nodes=nodes),
        size=size,
        artefacts=artefacts,
        disk=disk,
        memory=(*memory, replica_memory(found, size)),
        phases=phases,
        build=build,
        gpu_hours=hours,
        update=total("update", update_seconds(found, size, ask.changed, fleet)),
        serving=serving,
        shard_start=Figure("a shard's checksums", mapped * each, "seconds",
                           "bytes x verify_seconds_per_byte",
                           {"bytes": mapped, "verify_seconds_per_byte": each}),
        groups=(*groups, build_group(memory, fleet, ask, disk[1].value)),
        fleet=fleet,
        costs=_costs(ask, build, hours, groups, nodes),
        problems=tuple(problems),
        assumptions=tuple(_assumptions(found, settings, ask, size, shipped)),
    )  # fmt: skip
