"""Print the tables of `citeray ablate` on a terminal, or one of them as Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from evaluation.ablation.tabulate_runs import CANDIDATES, Ablation, CutoffRow, SystemRow, verdict_on
from evaluation.bootstrap import Interval
from evaluation.tables import table_lines

FILE_WIDTH = 120


def print_tables(out: Console, found: Ablation) -> None:
    """Print the tables of the systems, stages and cutoffs, and that of the oracles if any."""
    if not out.is_terminal:
        out.width = max(out.width, FILE_WIDTH)
    out.print(_systems_table(found))
    out.print(
        "Latency: sum of the milliseconds of all search stages of a question; the actual time is "
        "shorter, because some stages run concurrently. Whole: time until the whole reply."
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
        "Loss of each stage: measures with gold minus without gold",
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


MAP = "documents MAP"
MEASURES = {
    f"documents recall@{CANDIDATES}": f"recall@{CANDIDATES}",
    "snippets F1": "snippets F1",
    "yesno accuracy": "yes/no accuracy",
    "yesno macro F1": "yes/no macro F1",
    "factoid MRR": "factoid MRR",
    "list F1": "list F1",
    "ROUGE-2 F1": "ROUGE-2",
    "ROUGE-SU4 F1": "ROUGE-SU4",
}
LATENCIES = ("search p50, p95 ms", "whole p50, p95 ms")


def markdown_table(found: Ablation) -> str:
    """Return a table with one row per system, followed by a list of degradations.

    A dash means that a measure does not apply. MAP@10 has its 95% interval. The columns "search"
    are the summed times of all stages up to the ranking, the columns "whole" the times until the
    reply.
    """
    headings = ["system", "documents MAP@10", *MEASURES.values(), *LATENCIES]
    lines = [
        f"{found.systems[0].questions} questions, index {found.index_version}.",
        "",
        *table_lines(headings, [_cells(system) for system in found.systems]),
    ]
    losses = [line for system in found.systems for line in _losses(system)]
    return "\n".join([*lines, *(["", "Degraded:", "", *losses] if losses else [])])


def _cells(system: SystemRow) -> list[str]:
    ranked = system.measures.get(MAP)
    shown = f"{ranked.value:.3f} ({ranked.low:.3f}-{ranked.high:.3f})" if ranked else "-"
    values = (system.measures.get(name) for name in MEASURES)
    return [
        f"`{system.name}`",
        shown,
        *("-" if value is None else f"{value.value:.3f}" for value in values),
        f"{system.latency_median:,.0f}, {system.latency_p95:,.0f}",
        f"{system.whole_median:,.0f}, {system.whole_p95:,.0f}",
    ]


def _losses(system: SystemRow) -> list[str]:
    """Return one line per kind of degradation, since counts in the messages vary by question."""
    kinds: Counter[str] = Counter()
    for loss, questions in system.degraded.items():
        kinds[re.sub(r"\b\d+\b", "N", loss)] += questions
    return [
        f"- `{system.name}`: {questions} of {system.questions} questions: {kind}"
        for kind, questions in kinds.items()
    ]
