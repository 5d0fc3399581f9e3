"""`citeray plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cluster.cli import Config, Context, Json, Overrides, make_context
from cluster.errors import InputError
from cluster.object_store import File
from pipelines.find_sources import find_sources
from planning.coefficients import (
    DEFAULT_FILE,
    Coefficients,
    read_coefficients,
    write_coefficients,
)
from planning.emit import config_yaml, values_yaml, write_text
from planning.place_workers import Ask
from planning.plan import make_plan
from planning.show_plan import check_json, plan_json, show_check, show_plan
from planning.units import parse_bytes, parse_count, parse_rate, parse_seconds

PATHS = ("search", "answer")
CHECK_CITATIONS = "20k"


def register(app: typer.Typer) -> None:
    app.command("plan")(plan)


def plan(
    citations: Annotated[str, typer.Option(help="Size of the corpus, such as 38M.")] = "38M",
    qps: Annotated[str, typer.Option(help="Questions a second.")] = "1",
    p95: Annotated[str, typer.Option(help="How late 19 of 20 questions may be.")] = "2s",
    path: Annotated[str, typer.Option(help="search or answer: what p95 is of.")] = "search",
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure this machine first, some minutes.")
    ] = False,
    calibration: Annotated[
        Path | None, typer.Option(help=f"Coefficients to use, or to write; {DEFAULT_FILE}.")
    ] = None,
    sample: Annotated[
        list[str] | None,
        typer.Option(help="PubMed files to measure on; none: generated citations."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Build here for real, and tell the plan's error.")
    ] = False,
    check_citations: Annotated[
        str, typer.Option(help="Generated citations that --check builds.")
    ] = CHECK_CITATIONS,
    node_memory: Annotated[str, typer.Option(help="Memory of a node.")] = "64GB",
    node_cpus: Annotated[int, typer.Option(min=1, help="Cores of a node.")] = 16,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Nodes that build; none: as many as serve.")
    ] = None,
    gpu_nodes: Annotated[int, typer.Option(min=0, help="Of which have GPUs.")] = 0,
    gpus_per_node: Annotated[int, typer.Option(min=1, help="GPUs of such a node.")] = 1,
    shards: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Shards; none: the fewest that do.")
    ] = None,
    update_citations: Annotated[str, typer.Option(help="Size of an update.")] = "30k",
    node_hour: Annotated[float | None, typer.Option(min=0, help="Price of a node, hourly.")] = None,
    gpu_hour: Annotated[float | None, typer.Option(min=0, help="Price of a GPU, hourly.")] = None,
    emit_config: Annotated[
        Path | None, typer.Option(help="Write settings for --config here.")
    ] = None,
    emit_values: Annotated[
        Path | None, typer.Option(help="Write values for the Kubernetes manifests here.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show each formula.")] = False,
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
    if path == "answer" and not found.serving.llm:
        raise InputError(
            "--path answer: the language model was not measured; calibrate with "
            "--set llm.kind=url --set llm.url=URL, or plan for --path search"
        )
    settings = context.settings
    made = make_plan(found, settings, ask, shipped=shipped)
    if emit_config:
        write_text(config_yaml(settings, made), emit_config)
    if emit_values:
        write_text(values_yaml(made), emit_values)
    document = plan_json(made)
    if not json:
        show_plan(context.out, made, explain=explain)
    if check:
        document["check"] = _check(context, found, built, given, json=json)
    if json:
        context.print_json(document)
    for problem in made.problems:
        context.log.print(f"will not do: {problem}", style="red", soft_wrap=True, markup=False)
    if made.problems:
        raise typer.Exit(1)


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
