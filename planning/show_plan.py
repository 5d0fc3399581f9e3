"""Print a plan or a check as tables, or return it for JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from planning.estimate_serving import StagePlan
from planning.figures import UNKNOWN, Figure
from planning.plan import Plan
from planning.units import format_bytes, format_seconds


def _table(title: str, *columns: str) -> Table:
    """Return an empty table whose cells wrap on a narrow terminal, except names."""
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold", no_wrap=name == columns[0])
    return table


def _figures(title: str, figures: Iterable[Figure]) -> Table:
    table = _table(title, "name", "value")
    table.show_header = False
    for figure in figures:
        table.add_row(figure.name, str(figure))
    return table


def _groups(plan: Plan) -> Table:
    columns = ("group", "nodes", "cores", "memory", "GPUs", "disk", "holds")
    table = _table("Nodes (cores, memory, GPUs and disk of each)", *columns)
    for g in plan.groups:
        table.add_row(
            g.name, f"{g.nodes}", f"{g.cpus:g}", format_bytes(g.memory_bytes), f"{g.gpus:g}",
            format_bytes(g.disk_bytes), g.holds,
        )  # fmt: skip
    return table


def _serving(plan: Plan) -> Table:
    ask = plan.ask
    columns = ("stage", "replicas", "cores each", "GPUs each", "batch", "busy", "p95", "waiting")
    table = _table(f"Serving {ask.qps:g} questions/s ({ask.path})", *columns)

    def replicas(s: StagePlan) -> str:
        return f"{s.replicas} x {s.parts} shards" if s.name == "shard" else f"{s.replicas}"

    for s in plan.serving.stages:
        times = ["unknown"] * 3
        if s.service.known:
            times = [f"{s.utilisation.value:.0%}", *map(format_seconds, (s.seconds, s.wait.value))]
        table.add_row(s.name, replicas(s), f"{s.cpus:g}", f"{s.gpus:g}", f"{s.batch}", *times)
    return table


def all_figures(plan: Plan) -> list[Figure]:
    """Return every figure of the plan, in the order of the tables."""
    figures = [*plan.disk, *plan.artefacts, *plan.memory, *plan.phases, plan.build, plan.update]
    for stage in plan.serving.stages:
        figures += [stage.service, stage.wait, stage.utilisation]
    figures += [plan.serving.p95, *plan.costs]
    return figures + ([plan.gpu_hours] if plan.gpu_hours else [])


def show_plan(out: Console, plan: Plan, *, explain: bool) -> None:
    """Print the plan as tables; `explain` adds the formula behind each figure."""
    ask, size = plan.ask, plan.size
    out.print(
        f"{ask.citations:,} citations, {size.passages:,.0f} passages: {size.shards} shards of "
        f"{size.shard_citations:,.0f} citations",
        soft_wrap=True,
    )
    out.print(_figures("Disk", [*plan.disk, *plan.artefacts]))
    hours = [plan.gpu_hours] if plan.gpu_hours else []
    title = f"Build on {plan.fleet.nodes} nodes, {plan.fleet.encoders} encoders"
    update = Figure(f"an update of {ask.changed:,}", plan.update.value, "seconds", "")
    out.print(_figures(title, [*plan.phases, plan.build, *hours, update]))
    out.print(_figures("Memory of one process", plan.memory))
    out.print(_serving(plan))
    unknown = ", ".join(plan.serving.unknown)
    without = f" without {unknown} ({UNKNOWN})" if unknown else ""
    out.print(f"p95 of a question{without}: {plan.serving.p95}, asked {ask.p95_s:g} s",
              soft_wrap=True)  # fmt: skip
    out.print(_groups(plan))
    if plan.costs:
        day = f" of {ask.prices_of}" if ask.prices_of else ""
        out.print(_figures(f"Cost, in the currency of your prices{day}", plan.costs))
    if explain:
        for figure in all_figures(plan):
            out.print(figure.explained(), soft_wrap=True, highlight=False)
    for line in plan.assumptions:
        out.print(f"- {line}", soft_wrap=True, highlight=False)


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return the plan for JSON, with null for unknown values.

    `feasible` is false if the plan has problems, and null if it has none but something is unknown.
    """
    known: dict[str, Any] = json.loads(json.dumps(asdict(plan)), parse_constant=lambda _: None)
    feasible = False if plan.problems else None if plan.unknown else True
    return {**known, "feasible": feasible}
