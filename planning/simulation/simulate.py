"""Simulates a plan under load while nodes are lost: latency, degraded answers, cost, what to buy.

What is simulated is a stretch without a loss, and one for each group of nodes in which one of
its nodes is lost and comes back. They are weighed as often as they occur in an hour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cluster.errors import InputError
from cluster.settings.settings import Settings
from planning.estimate_build import Size
from planning.estimate_serving import GRAPH_SECONDS, Demand, demands
from planning.figures import Figure
from planning.measure.coefficients import Coefficients, Point
from planning.place_workers import WorkerGroup
from planning.plan import Plan
from planning.simulation.queues import (
    NO_LOSS,
    Loss,
    Seconds,
    lognormal,
    quantile,
    serve_batches,
    serve_parts,
)

# A purchase is judged without losses, for which less time will do.
WARM_UP_S, JUDGED_S = 60.0, 120.0
# More would take minutes of the planner's own machine.
MOST_QUESTIONS = 400_000


@dataclass(frozen=True, slots=True)
class Weather:
    """What goes on meanwhile: a node is lost each `lost_every_s` and back after `back_s`."""

    lost_every_s: float = 3600.0
    back_s: float = 300.0
    seed: int = 0

    @property
    def stretch_s(self) -> float:
        """Seconds of a simulated stretch: a loss, the time without the node, as long after it."""
        return 2 * self.back_s


@dataclass(frozen=True, slots=True)
class Station:
    """One stage as it is simulated, on nodes of `group`.

    Each of its `parts` has `replicas` that take up to `batch` questions at once. Of a language
    model a replica is `places` of them, as it takes up a question while others are at work.
    """

    name: str
    group: str
    points: tuple[Point, ...]
    parts: int
    replicas: int
    batch: int
    deadline_s: float
    places: int = 1


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seconds of every question that came after the warm-up, and whether it lost a part."""

    name: str
    share: float
    seconds: Seconds
    degraded: Seconds


@dataclass(frozen=True, slots=True)
class Outcome:
    """Latency and degraded answers of one kind of question, over an hour with its losses."""

    name: str
    p50_s: float
    p95_s: float
    degraded: float
    stretches: tuple[tuple[str, float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Purchase:
    """The 95th percentile without losses once `what` is doubled, by `replicas` more."""

    what: str
    replicas: int
    p95_s: float


@dataclass(frozen=True, slots=True)
class Simulation:
    """`without_model` and, where the model's seconds are known, `with_model`.

    `purchases` begin with what lowers the 95th percentile most; "nothing" is among them.
    """

    weather: Weather
    without_model: Outcome
    with_model: Outcome | None
    cost: Figure | None
    purchases: tuple[Purchase, ...]


def stations(found: Coefficients, settings: Settings, plan: Plan) -> list[Station]:
    """The stages of `plan`, the gateways first."""
    serve, gateway = settings.serve, (Point(concurrent=1, median_seconds=GRAPH_SECONDS,
                                            p95_seconds=GRAPH_SECONDS),)  # fmt: skip
    made = [Station("gateway", "models", gateway, 1, plan.serving.gateways, 1,
                    serve.http.wait_s)]  # fmt: skip
    for demand in demands(found, settings, plan.size, plan.ask.path):
        stage = plan.serving.stage(demand.name)
        if stage is not None:
            deadline = getattr(serve, demand.name.partition("-")[0]).deadline_s
            made.append(_station(demand, stage.replicas, stage.batch, deadline, plan.ask.qps))
    return made


def _station(demand: Demand, replicas: int, batch: int, deadline_s: float, qps: float) -> Station:
    points = tuple(p for p in demand.points if p.concurrent <= batch)
    if demand.name.startswith("llm"):
        return Station(demand.name, "llm", (_at_load(points, replicas, qps),), 1, replicas * batch,
                       1, deadline_s, batch)  # fmt: skip
    group = "retrieval" if demand.name == "shard" else "models"
    return Station(demand.name, group, points, demand.parts, replicas, batch, deadline_s)


def _at_load(points: Sequence[Point], replicas: int, qps: float) -> Point:
    """The seconds of a reply where as many are at work as come and go."""
    at = [float(p.concurrent) for p in points]
    together = 1.0
    for _ in range(50):
        median = float(np.interp(together, at, [p.median_seconds for p in points]))
        together = min(max(qps * median / replicas, 1.0), at[-1])
    p95 = float(np.interp(together, at, [p.p95_seconds for p in points]))
    return Point(concurrent=1, median_seconds=median, p95_seconds=max(p95, median))


def _losses(station: Station, group: WorkerGroup, weather: Weather, restart_s: float) -> Loss:
    """What `station` loses with the first node of `group`, which holds its share of each stage."""
    if station.group != group.name:
        return NO_LOSS
    count = math.ceil(station.parts * station.replicas / station.places / group.nodes)
    count *= station.places
    numbers = np.arange(count)
    begin = WARM_UP_S + weather.stretch_s / 4
    back = weather.back_s + (restart_s if station.name == "shard" else 0.0)
    if station.parts > 1:
        numbers = np.column_stack((numbers % station.parts, numbers // station.parts))
    return Loss(begin, begin + back, numbers)


def pass_through(
    arrivals: Seconds, line: Sequence[Station], losses: Sequence[Loss], seed: int
) -> tuple[Seconds, Seconds]:
    """When each of `arrivals` leaves the last station, and whether it lost a part on its way.

    The same seed draws the same seconds for a stage however many replicas it has.
    """
    now, degraded = arrivals.copy(), np.zeros(len(arrivals))
    for number, (station, loss) in enumerate(zip(line, losses, strict=True)):
        order = np.argsort(now, kind="stable")
        draw = lognormal(station.points, np.random.default_rng((seed, number)))
        if station.parts > 1:
            shape = (station.parts, station.replicas)
            served = serve_parts(now[order], shape, draw, station.deadline_s, loss)
        else:
            batch, replicas = station.batch, station.replicas
            served = serve_batches(now[order], replicas, batch, draw, station.deadline_s, loss)
        now[order] = served.left
        degraded[order] = np.maximum(degraded[order], ~served.done)
    return now, degraded


def _stretch(
    name: str, share: float, line: Sequence[Station], losses: Sequence[Loss], qps: float,
    weather: Weather,
) -> Stretch:  # fmt: skip
    generator = np.random.default_rng((weather.seed, 1 << 20))
    count = math.ceil(qps * (WARM_UP_S + weather.stretch_s))
    arrivals = np.cumsum(generator.exponential(1 / qps, count))
    left, degraded = pass_through(arrivals, line, losses, weather.seed)
    kept = arrivals >= WARM_UP_S
    return Stretch(name, share, (left - arrivals)[kept], degraded[kept])


def _at(stretch: Stretch, q: float) -> float:
    return float(np.quantile(stretch.seconds, q))


def _outcome(name: str, plan: Plan, line: Sequence[Station], weather: Weather) -> Outcome:
    groups = [g for g in plan.groups if any(s.group == g.name for s in line)]
    nodes = sum(g.nodes for g in groups)
    lost_share = weather.stretch_s / weather.lost_every_s
    qps, none = plan.ask.qps, [NO_LOSS] * len(line)
    stretches = [_stretch("no node lost", 1 - lost_share, line, none, qps, weather)]
    for group in groups:
        losses = [_losses(s, group, weather, plan.shard_start.value) for s in line]
        share = lost_share * group.nodes / nodes
        stretches.append(_stretch(f"a {group.name} node lost", share, line, losses, qps, weather))
    weights = np.concatenate([np.full(len(s.seconds), s.share / len(s.seconds)) for s in stretches])
    seconds = np.concatenate([s.seconds for s in stretches])
    lost = np.concatenate([s.degraded for s in stretches])
    alone = [(s.name, _at(s, 0.5), _at(s, 0.95), float(s.degraded.mean())) for s in stretches]
    return Outcome(
        name,
        quantile(seconds, weights, 0.5),
        quantile(seconds, weights, 0.95),
        float(lost @ weights),
        tuple(alone),
    )


def _purchases(
    found: Coefficients, settings: Settings, plan: Plan, line: Sequence[Station], weather: Weather
) -> tuple[Purchase, ...]:
    """The 95th percentile without losses once one thing is doubled, lowest first."""
    judged = replace(weather, back_s=min(weather.back_s, JUDGED_S / 2))
    bought = {"nothing": (list(line), 0)}
    bought |= {
        f"{s.name} replicas": (
            [replace(s, replicas=2 * s.replicas) if other is s else other for other in line],
            s.parts * s.replicas // s.places,
        )
        for s in line
    }
    halved = Size.of(found, plan.size.citations, 2 * plan.size.shards)
    point = next(d.points for d in demands(found, settings, halved, plan.ask.path)
                 if d.name == "shard")  # fmt: skip
    split = [replace(s, parts=2 * s.parts, points=point) if s.name == "shard" else s for s in line]
    more = sum(s.parts * s.replicas for s in line if s.name == "shard")
    bought["shards, each half as large"] = (split, more)
    none, qps = [NO_LOSS] * len(line), plan.ask.qps
    made = [
        Purchase(what, count, float(np.quantile(
            _stretch(what, 1.0, changed, none, qps, judged).seconds, 0.95)))
        for what, (changed, count) in bought.items()
    ]  # fmt: skip
    return tuple(sorted(made, key=lambda p: p.p95_s))


def _cost(plan: Plan, groups: set[str]) -> Figure | None:
    """What one answer costs, with every serving node paid for the whole hour."""
    ask = plan.ask
    if ask.node_price is None:
        return None
    held = [g for g in plan.groups if g.name in groups]
    return Figure.of(
        "an answer", "in your currency",
        "node_hours_an_answer x price_of_a_node_hour + gpu_hours_an_answer x price_of_a_gpu_hour",
        sum(g.nodes for g in held) / (3600 * ask.qps), ask.node_price,
        sum(g.nodes * g.gpus for g in held) / (3600 * ask.qps), ask.gpu_price or 0.0,
        note="every node of the service, whether busy or not",
    )  # fmt: skip


def simulate(
    found: Coefficients, settings: Settings, plan: Plan, weather: Weather = Weather()
) -> Simulation:
    """Simulate `plan`; raises InputError for a load or a time that is too large to be simulated."""
    questions = plan.ask.qps * (WARM_UP_S + weather.stretch_s)
    if questions > MOST_QUESTIONS:
        raise InputError(
            f"--simulate: {questions:,.0f} questions in {weather.stretch_s + WARM_UP_S:,.0f} s are "
            f"more than {MOST_QUESTIONS:,}; lower --qps or --node-back"
        )
    if weather.stretch_s >= weather.lost_every_s:
        raise InputError(
            f"--node-back {weather.back_s:g}s: a node must be back within half of "
            f"--node-lost-every, {weather.lost_every_s:g} s"
        )
    line = stations(found, settings, plan)
    plain = [s for s in line if s.group != "llm"]
    with_model = _outcome("with the model", plan, line, weather) if len(plain) < len(line) else None
    return Simulation(
        weather,
        _outcome("without the model", plan, plain, weather),
        with_model,
        _cost(plan, {g.name for g in plan.groups if g.name != "build"}),
        _purchases(found, settings, plan, line, weather),
    )
