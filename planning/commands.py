"""`citeray plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from cluster.cli import Config, Context, Json, Overrides, make_context
from cluster.errors import InputError
from cluster.object_store import File
from cluster.settings import Settings
from pipelines.find_sources import find_sources
from planning import options
from planning.coefficients import (
    DEFAULT_FILE,
    Coefficients,
    read_coefficients,
    write_coefficients,
)
from planning.emit import config_yaml, values_yaml, write_text
from planning.place_workers import Ask
from planning.plan import Plan, make_plan
from planning.show_plan import check_json, plan_json, show_check, show_plan
from planning.units import parse_bytes, parse_count, parse_rate, parse_seconds

PATHS = ("search", "answer")


def register(app: typer.Typer) -> None:
    app.command("plan")(plan)


def plan(
    citations: options.Citations = "38M",
    qps: options.Qps = "1",
    p95: options.P95 = "2s",
    path: options.QuestionPath = "search",
    calibrate: options.Calibrate = False,
    calibration: options.Calibration = None,
    sample: options.Sample = None,
    check: options.Check = False,
    check_citations: options.CheckCitations = "20k",
    node_memory: options.NodeMemory = "64GB",
    node_cpus: options.NodeCpus = 16,
    nodes: options.Nodes = None,
    gpu_nodes: options.GpuNodes = 0,
    gpus_per_node: options.GpusPerNode = 1,
    shards: options.Shards = None,
    update_citations: options.UpdateCitations = "30k",
    node_hour: options.NodeHour = None,
    gpu_hour: options.GpuHour = None,
    emit_config: options.EmitConfig = None,
    emit_values: options.EmitValues = None,
    explain: options.Explain = False,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Shards, replicas, memory, hours and cost for a corpus and a load.

    Figures come from a calibration on this machine (--calibrate, kept for later runs), or
    from one that is shipped. The exit code is 1 where the plan would not do: p95 cannot be
    met, or a process does not fit a node.
    """
    context = make_context(config, overrides, json)
    ask = Ask(
        citations=parse_count(citations, "--citations"),
        qps=parse_rate(qps, "--qps"),
        p95_s=parse_seconds(p95, "--p95"),
        path=_path(path),
        node_memory=parse_bytes(node_memory, "--node-memory"),
        node_cpus=node_cpus,
        nodes=nodes,
        gpu_nodes=gpu_nodes,
        gpus_per_node=gpus_per_node,
        changed=parse_count(update_citations, "--update-citations"),
        shards=shards,
        node_price=node_hour,
        gpu_price=gpu_hour,
    )
    built = parse_count(check_citations, "--check-citations")
    given = find_sources(sample) if sample else []
    found, shipped = _coefficients(context, calibration, given, calibrate=calibrate)
    made = _plan(context.settings, found, ask, shipped=shipped)
    _emit(context.settings, made, emit_config, emit_values)
    if not json:
        show_plan(context.out, made, explain=explain)
    rows = _check(context, found, built, given, json=json) if check else []
    if json:
        context.print_json({**plan_json(made), "check": rows})
    for problem in made.problems:
        context.log.print(f"will not do: {problem}", style="red", soft_wrap=True, markup=False)
    if made.problems:
        raise typer.Exit(1)


def _plan(settings: Settings, found: Coefficients, ask: Ask, *, shipped: bool) -> Plan:
    if ask.path == "answer" and not found.serving.llm:
        raise InputError(
            "--path answer: the language model was not measured; calibrate with "
            "--set llm.kind=url --set llm.url=URL, or plan for --path search"
        )
    return make_plan(found, settings, ask, shipped=shipped)


def _emit(settings: Settings, made: Plan, config: Path | None, values: Path | None) -> None:
    if config:
        write_text(config_yaml(settings, made), config)
    if values:
        write_text(values_yaml(made), values)


def _path(path: str) -> str:
    if path not in PATHS:
        raise InputError(f"--path {path}: unknown; there are: {', '.join(PATHS)}")
    return path


def _coefficients(
    context: Context, calibration: Path | None, given: list[File], *, calibrate: bool
) -> tuple[Coefficients, bool]:
    """The coefficients to plan with, and whether they are the shipped ones."""
    file = calibration or DEFAULT_FILE
    if calibrate:
        from planning.calibrate import calibrate as measure

        def tell(what: str) -> None:
            context.log.print(f"measuring: {what}", soft_wrap=True)

        found = measure(context.settings, tell, given)
        write_coefficients(found, file)
        context.log.print(f"coefficients -> {file}", soft_wrap=True)
        return found, False
    if calibration or file.is_file():
        return read_coefficients(file), False
    return read_coefficients(None), True


def _check(
    context: Context, found: Coefficients, citations: int, given: list[File], *, json: bool
) -> list[dict[str, Any]]:
    from planning.check_plan import check_plan

    def tell(what: str) -> None:
        context.log.print(f"checking: {what}", soft_wrap=True)

    rows = check_plan(found, context.settings, citations, tell, given)
    if not json:
        show_check(context.out, rows)
    return check_json(rows)
