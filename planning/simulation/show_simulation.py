"""A simulation as a short table."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from planning.simulation.simulate import Outcome, Simulation
from planning.units import format_seconds


def _rows(table: Table, outcome: Outcome) -> None:
    table.add_row(outcome.name, "the hour", format_seconds(outcome.p50_s),
                  format_seconds(outcome.p95_s), f"{outcome.degraded:.2%}")  # fmt: skip
    for name, p50, p95, degraded in outcome.stretches:
        table.add_row("", name, format_seconds(p50), format_seconds(p95), f"{degraded:.2%}")


def show_simulation(out: Console, made: Simulation, priced: str) -> None:
    """Print latency and degraded answers, the cost of an answer, and what to buy first.

    `priced` is the day of the prices, or "".
    """
    title = (
        f"Simulated: a node lost each {format_seconds(made.weather.lost_every_s)}, back after "
        f"{format_seconds(made.weather.back_s)}, seed {made.weather.seed}"
    )
    table = Table("answers", "when", "p50", "p95", "degraded", title=title, title_justify="left")
    for outcome in (made.without_model, made.with_model):
        if outcome:
            _rows(table, outcome)
    out.print(table)
    if made.cost:
        day = f", prices of {priced}" if priced else ""
        out.print(f"cost of an answer: {made.cost.value:.3g} {made.cost.unit}{day}", soft_wrap=True)
    bought = Table("twice as many", "more replicas", "p95 without a loss",
                   title="What to buy first", title_justify="left")  # fmt: skip
    for purchase in made.purchases:
        bought.add_row(purchase.what, f"{purchase.replicas}", format_seconds(purchase.p95_s))
    out.print(bought)
