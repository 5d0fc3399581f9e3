"""An hour of a plan on paper, by coefficients in round numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cluster.errors import InputError
from cluster.settings.settings import load_settings
from commands.cli import app
from planning.measure.coefficients import Point, write_coefficients
from planning.place_workers import Ask
from planning.plan import Plan, make_plan
from planning.simulation.simulate import Simulation, Weather, simulate
from tests.planning.some_coefficients import coefficients

pytestmark = pytest.mark.ray

ASK = Ask(2_000_000, 4.0, 2.0, node_price=1.0, prices_of="2026-11-26")
WEATHER = Weather(lost_every_s=600, back_s=15)
STAGES = ("shard", "encoder", "expander", "gateway", "writer")
TWICE = [
    f"serve.{s}.{kept}"
    for s in STAGES
    for kept in ("min_replicas=2", "max_replicas=2", "per_node=1")
]
LLM = (Point(concurrent=1, median_seconds=0.5, p95_seconds=0.6),
       Point(concurrent=8, median_seconds=1.0, p95_seconds=1.2))  # fmt: skip


def planned(*overrides: str, **asked: object) -> tuple[Plan, Simulation]:
    settings = load_settings(overrides=overrides)
    found = coefficients(llm=LLM) if asked.get("path") == "answer" else coefficients()
    plan = make_plan(found, settings, replace(ASK, **asked))  # type: ignore[arg-type]
    return plan, simulate(found, settings, plan, WEATHER)


def test_the_same_seed_gives_the_same_hour_and_another_one_another() -> None:
    plan, first = planned()
    assert planned()[1] == first
    other = simulate(coefficients(), load_settings(), plan, replace(WEATHER, seed=1))
    assert other.without_model.p95_s != first.without_model.p95_s


def test_without_losses_the_hour_is_no_slower_than_the_plan_allows() -> None:
    plan, made = planned()
    name, p50, p95, degraded = made.without_model.stretches[0]
    assert (name, degraded) == ("no node lost", 0.0)
    # The plan adds up the stages' percentiles, which is never less than that of the sum.
    assert 0 < p50 < p95 <= plan.serving.p95.value


def test_a_lost_node_degrades_answers_unless_another_holds_the_same() -> None:
    _, alone = planned()
    _, twice = planned(*TWICE)
    lost = {name: share for name, _, _, share in alone.without_model.stretches}
    assert lost["a retrieval node lost"] > 0.2
    assert twice.without_model.degraded < 0.1 * alone.without_model.degraded


def test_answers_with_the_model_take_its_time_on_top() -> None:
    _, made = planned(path="answer", p95_s=6.0)
    assert made.with_model is not None
    assert made.with_model.p50_s > made.without_model.p50_s + 0.4
    assert planned()[1].with_model is None


def test_what_to_buy_first_is_what_lowers_the_percentile_most() -> None:
    _, made = planned()
    p95 = {p.what: p.p95_s for p in made.purchases}
    assert list(p95.values()) == sorted(p95.values())
    assert made.purchases[0].what != "nothing"
    assert p95["encoder replicas"] <= p95["nothing"] == made.without_model.stretches[0][2]
    assert {"shard replicas", "shards, each half as large"} < set(p95)


def test_hour_that_cannot_be_simulated_is_refused() -> None:
    settings, found = load_settings(), coefficients()
    plan = make_plan(found, settings, ASK)
    busy = replace(plan, ask=replace(plan.ask, qps=5000.0))
    with pytest.raises(InputError, match="are more than 400,000; lower --qps or --node-back"):
        simulate(found, settings, busy, WEATHER)
    with pytest.raises(InputError, match="--node-back 40s: a node must be back within half of"):
        simulate(found, settings, plan, Weather(60, 40))


def test_the_command_prints_the_simulation_and_gives_it_as_json(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    write_coefficients(coefficients(), file)
    asked = ["plan", "--citations", "1M", "--calibration", str(file), "--simulate", "--qps", "2",
             "--node-back", "20s", "--node-hour", "1", "--prices-of", "2026-11-26",
             "--path", "answer", "--llm-reply", "1s", "--p95", "9s"]  # fmt: skip
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert "What to buy first" in shown.stdout
    assert "prices of 2026-11-26" in shown.stdout
    assert "given, not measured" in shown.stdout
    found = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)["simulation"]
    assert found["with_model"]["p95_s"] > found["without_model"]["p95_s"] > 0
