"""`citeray plan`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from cluster.errors import InputError
from cluster.settings.read_config import CONFIGS
from cluster.settings.settings import DEFAULT_CONFIG
from cluster.storage.object_store import File
from cluster.storage.whole_files import write_atomically
from commands.context import Config, Context, Json, Overrides, make_context
from pipelines.indexing.sources.find_sources import find_sources
from planning.chart_values import values_yaml
from planning.emit import config_yaml
from planning.measure.coefficients import (
    DEFAULT_FILE,
    Coefficients,
    read_coefficients,
    read_gpu_coefficients,
    write_coefficients,
)
from planning.place_workers import Ask
from planning.plan import Plan, make_plan
from planning.show_plan import plan_json, show_plan
from planning.units import parse_bytes, parse_count, parse_day, parse_rate, parse_seconds

Citations = Annotated[str, typer.Option(help="Size of the corpus, such as 38M.")]
Qps = Annotated[str, typer.Option(help="Questions per second.")]
P95 = Annotated[str, typer.Option(help="Target 95th-percentile latency, such as 2s.")]
QuestionPath = Annotated[
    Literal["search", "answer"], typer.Option(help="Operation that --p95 applies to.")
]
Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Measure this machine first (takes minutes).")
]
Calibration = Annotated[
    Path | None,
    typer.Option(
        help=f"Coefficients to read, or to write with --calibrate (default {DEFAULT_FILE})."
    ),
]
Sample = Annotated[
    list[str] | None,
    typer.Option(help="PubMed files for --calibrate (default: generated citations)."),
]
Gpu = Annotated[
    Path | None,
    typer.Option(help="GPU coefficients that `python -m benchmarks.gpu_check` has written."),
]
NodeMemory = Annotated[str, typer.Option(help="Memory per node, such as 64GB or 64Gi.")]
NodeCpus = Annotated[int, typer.Option(min=1, help="Cores per node.")]
Nodes = Annotated[
    int | None, typer.Option(min=1, help="Number of nodes that build (default: as many as serve).")
]
GpuNodes = Annotated[
    int,
    typer.Option(
        min=0, help="Number of GPU nodes that build; 0 means all nodes if the settings use GPUs."
    ),
]
GpuMemory = Annotated[
    str | None,
    typer.Option(help="Memory per GPU, such as 24GB (default: as in the file of --gpu)."),
]
GpusPerNode = Annotated[int, typer.Option(min=1, help="GPUs per GPU node.")]
Shards = Annotated[
    int | None,
    typer.Option(min=1, max=4096, help="Number of shards (default: the fewest that suffice)."),
]
UpdateCitations = Annotated[str, typer.Option(help="Number of citations in one update.")]
NodeHour = Annotated[float | None, typer.Option(min=0, help="Price of a node per hour.")]
GpuHour = Annotated[float | None, typer.Option(min=0, help="Price of a GPU per hour.")]
EmitConfig = Annotated[
    Path | None, typer.Option(help="Write a settings file for --config to this path.")
]
EmitValues = Annotated[
    Path | None, typer.Option(help="Write values for the Helm chart in k8s/ to this path.")
]
LlmReply = Annotated[
    str | None,
    typer.Option(
        help="Median reply time of the language model, if it was not measured, such as 6s."
    ),
]
PricesOf = Annotated[
    str, typer.Option(metavar="DAY", help="Date of the prices, such as 2026-11-26.")
]
Explain = Annotated[bool, typer.Option("--explain", help="Show each figure's formula.")]


def plan(
    citations: Citations = "38M", qps: Qps = "1", p95: P95 = "2s", path: QuestionPath = "search",
    calibrate: Calibrate = False, calibration: Calibration = None, sample: Sample = None,
    gpu: Gpu = None,
    node_memory: NodeMemory = "64GB", node_cpus: NodeCpus = 16, nodes: Nodes = None,
    gpu_nodes: GpuNodes = 0, gpus_per_node: GpusPerNode = 1, gpu_memory: GpuMemory = None,
    shards: Shards = None,
    update_citations: UpdateCitations = "30k",
    node_hour: NodeHour = None, gpu_hour: GpuHour = None,
    emit_config: EmitConfig = None, emit_values: EmitValues = None,
    prices_of: PricesOf = "", llm_reply: LlmReply = None,
    explain: Explain = False,
    config: Config = None, overrides: Overrides = None, json: Json = False,
) -> None:  # fmt: skip
    """Plan shards, replicas, memory, hours and cost for a corpus and a load.

    The figures come from a calibration of this machine (--calibrate, saved for later runs), or from
    the calibration that ships with CiteRay. Figures that depend on a GPU that was not measured are
    unknown. The exit code is 1 if the plan is not feasible: the p95 target cannot be met, a process
    does not fit on a node or a graph on its GPU, or limits of the settings contradict each other.
    It is also 1 if the plan cannot tell because something is unknown; the files are written in any
    case.
    """
    context = make_context(config, overrides, json)
    reply = parse_seconds(llm_reply, "--llm-reply") if llm_reply else None
    ask = Ask(
        citations=parse_count(citations, "--citations"), qps=parse_rate(qps, "--qps"),
        p95_s=parse_seconds(p95, "--p95"), path=path,
        node_memory=parse_bytes(node_memory, "--node-memory"), node_cpus=node_cpus, nodes=nodes,
        gpu_nodes=gpu_nodes, gpus_per_node=gpus_per_node, shards=shards,
        gpu_memory=parse_bytes(gpu_memory, "--gpu-memory") if gpu_memory else None,
        changed=parse_count(update_citations, "--update-citations"),
        node_price=node_hour, gpu_price=gpu_hour, prices_of=parse_day(prices_of, "--prices-of"),
        reply_s=reply,
    )  # fmt: skip
    given = find_sources(sample) if sample else []
    measured = read_gpu_coefficients(gpu) if gpu else None
    found, shipped = _coefficients(context, calibration, given, path, reply, calibrate=calibrate)
    found = found.model_copy(update={"gpu": measured})
    made = make_plan(found, context.settings, ask, shipped=shipped)
    _emit(context, made, emit_config, emit_values)
    _show(context, made, explain=explain)


def _emit(context: Context, made: Plan, config: Path | None, values: Path | None) -> None:
    if config:
        write_atomically(config, config_yaml(context.settings, made).encode())
    if values:
        # The chart has the shipped files; other settings are written as changes to laptop.yaml.
        shipped = context.config if (CONFIGS / str(context.config)).is_file() else DEFAULT_CONFIG
        text = values_yaml(context.settings, made, str(shipped))
        write_atomically(values, text.encode())


def _show(context: Context, made: Plan, *, explain: bool) -> None:
    if context.json:
        context.print_json(plan_json(made))
    else:
        show_plan(context.out, made, explain=explain)
    for problem in made.problems:
        context.log.print(f"not feasible: {problem}", style="red")
    if made.unknown and not made.problems:
        unknown = ", ".join(made.unknown)
        context.log.print(
            f"not known to be feasible, because these are unknown: {unknown}. For the times, use "
            "--calibrate on a machine with such a GPU, or --gpu FILE. For its memory, use "
            "--gpu-memory",
            style="yellow", soft_wrap=True,
        )  # fmt: skip
    if made.problems or made.unknown:
        raise typer.Exit(1)


def _teller(context: Context, doing: str) -> Callable[[str], None]:
    return lambda what: context.log.print(f"{doing}: {what}", soft_wrap=True)


def _coefficients(
    context: Context,
    calibration: Path | None,
    given: list[File],
    path: str,
    reply_s: float | None,
    *,
    calibrate: bool,
) -> tuple[Coefficients, bool]:
    """Return the coefficients to plan with, and whether they are the shipped ones.

    Raises InputError if the coefficients do not cover `path`.
    """
    file = calibration or DEFAULT_FILE
    shipped = False
    if calibrate:
        from planning.measure.calibrate import calibrate as measure

        found = measure(context.settings, _teller(context, "measuring"), given)
        write_coefficients(found, file)
        context.log.print(f"coefficients -> {file}", soft_wrap=True)
    else:
        shipped = not calibration and not file.is_file()
        found = read_coefficients(None if shipped else file)
    if reply_s is not None:
        found = found.with_reply(reply_s, context.settings.llm.max_concurrent)
    if path == "answer" and not found.serving.llm:
        raise InputError(
            "--path answer: the language model was not measured; calibrate with "
            "--set llm.kind=url --set llm.url=URL, give --llm-reply, or plan for --path search"
        )
    return found, shipped
