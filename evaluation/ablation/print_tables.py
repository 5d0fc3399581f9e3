"""Print the tables of `citeray ablate` on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from evaluation.ablation.tabulate_runs import Ablation, CutoffRow, SystemRow, verdict_on
from evaluation.bootstrap import Interval

FILE_WIDTH = 120


def print_tables(out: Console, found: Ablation) -> None:
    """Print the tables of the systems, stages and cutoffs, and that of the oracles if any."""
    if not out.is_terminal:
        out.width = max(out.width, FILE_WIDTH)
    out.print(_systems_table(found))
    out.print(
        "Latency: milliseconds of all search stages of a question, added up; the actual wait is "
        "shorter, because some stages run concurrently. Whole: the wait for the whole reply."
    )
    for row in found.systems:
        for loss, count in row.degraded.items():
            out.print(f"{row.name}: {count} of {row.questions} questions: {loss}")
    out.print(_stages_table(found.systems))
    out.print(_cutoffs_table(found.cutoffs))
    if found.losses:
        out.print(_losses_table(found))


def _systems_table(found: Ablation) -> Table:
    seeds = ", ".join(map(str, found.seeds))
    title = (
        f"{found.systems[0].questions} questions, index {found.index_version}, 95% bootstrap "
        f"intervals (seed {seeds}), differences from {found.systems[0].name}"
    )
    table = _table(title, ["measure"], [system.name for system in found.systems])
    table.show_lines = True
    for name in found.systems[0].measures:
        table.add_row(name, *(_system_cell(system, name) for system in found.systems))
    table.add_row("latency, mean ms", *(f"{s.latency_mean:.1f}" for s in found.systems))
    table.add_row("latency, median ms", *(f"{s.latency_median:.1f}" for s in found.systems))
    table.add_row("latency, 95th percentile ms", *(f"{s.latency_p95:.1f}" for s in found.systems))
    table.add_row("whole, median ms", *(f"{s.whole_median:.1f}" for s in found.systems))
    table.add_row("whole, 95th percentile ms", *(f"{s.whole_p95:.1f}" for s in found.systems))
    calls = (f"{s.model_calls:.2f}" for s in found.systems)
    table.add_row("language model calls per search", *calls)
    return table


def _stages_table(systems: Sequence[SystemRow]) -> Table:
    names = [system.name for system in systems]
    table = _table("Median milliseconds of each stage, where it was used", ["stage"], names)
    for stage in dict.fromkeys(stage for system in systems for stage in system.stages):
        spent = (system.stages.get(stage) for system in systems)
        table.add_row(stage, *("-" if ms is None else f"{ms:.1f}" for ms in spent))
    return table


def _system_cell(system: SystemRow, name: str) -> str:
    if name not in system.measures:
        return "-"
    lines = [f"{system.measures[name].value:.4f}", _span(system.measures[name])]
    if name in system.differences:
        difference = system.differences[name]
        lines += [f"{difference.value:+.4f}", _span(difference, "+"), verdict_on(name, difference)]
    return "\n".join(lines)


def _cutoffs_table(rows: Sequence[CutoffRow]) -> Table:
    cutoffs = list(dict.fromkeys(row.k for row in rows))
    table = _table("Sensitivity to k", ["system", "measure"], [f"k = {k}" for k in cutoffs])
    for name in dict.fromkeys(row.name for row in rows):
        mine = [row for row in rows if row.name == name]
        for measure in dict.fromkeys(measure for row in mine for measure in row.measures):
            found = (row.measures.get(measure) for row in mine)
            table.add_row(name, measure, *(f"{i.value:.4f}" if i else "-" for i in found))
        table.add_row(name, "latency, mean ms", *(f"{row.latency_mean:.1f}" for row in mine))
    return table


def _losses_table(found: Ablation) -> Table:
    table = _table(
        "Lost at each stage: with gold minus without gold",
        ["system", "oracle", "measure"],
        ["without gold", "with gold", "loss", "95% interval"],
    )
    for row in found.losses:
        values = (f"{row.without:.4f}", f"{row.with_oracle:.4f}", f"{row.lost.value:+.4f}")
        table.add_row(row.name, row.oracle, row.measure, *values, _span(row.lost, "+"))
    return table


def _table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=title)
    for heading in words:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _span(interval: Interval, sign: str = "") -> str:
    return f"{interval.low:{sign}.4f} to {interval.high:{sign}.4f}"
