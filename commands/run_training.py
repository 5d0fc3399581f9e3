"""What the commands of `citeray train` share: their options, and how a job is run and shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cluster.errors import InputError
from cluster.ray.session import ray_session
from commands.context import Context

if TYPE_CHECKING:
    from pipelines.train.jobs import Job
    from pipelines.train.loop import Measures, Report

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the result; resumes there.")]
HeldOut = Annotated[
    list[Path] | None, typer.Option(help="Files to measure on and never to learn from.")
]
Corpus = Annotated[
    list[str], typer.Option(help="PubMed XML with the gold citations and others: files, globs.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--with", "-w", metavar="KEY=VALUE", help="A line of the recipe, as steps=200."),
]
Licence = Annotated[str, typer.Option(help="What the data allow, for the card.")]
Workers = Annotated[int, typer.Option(min=0, help="Workers of Ray Train; 0: this process alone.")]
Questions = Annotated[list[Path], typer.Argument(help="BioASQ files with gold documents.")]


def whole_paths(paths: list[Path] | None) -> tuple[Path, ...]:
    """Absolute paths, because workers may run in another folder."""
    return tuple(path.resolve() for path in paths or ())


def run_training(context: Context, job: Job, licence: str, workers: int) -> None:
    """Train `job` to its end and print what was measured, with the folder of the result."""
    show_measures(context, train_job(context, job, licence, workers), job.folder)


def show_measures(context: Context, measured: Measures, folder: Path) -> None:
    """Print what was measured of a training, with the folder of its result."""
    if context.json:
        context.print_json({"folder": str(folder), "measured": measured})
        return
    table = Table("measure", "value")
    for name, value in measured.items():
        table.add_row(name, f"{value:.3f}")
    context.out.print(table)
    context.out.print(str(folder), soft_wrap=True)


def train_job(context: Context, job: Job, licence: str, workers: int) -> Measures:
    """Train `job` in this process, or in `workers` of Ray Train where that is above 0."""
    from pipelines.train.run_job import run_job

    if workers > job.recipe.batch:
        raise InputError(
            f"{workers} workers for batches of {job.recipe.batch}: take fewer, or a larger batch "
            "(--with batch=...)"
        )
    tell = partial(_tell, context)
    if workers == 0:
        return run_job(job, licence, tell)
    context.log.print(f"{workers} workers; how they stand is in {job.folder}/.training/log.jsonl")
    with ray_session(context.settings.ray):
        return run_job(job, licence, tell, _on_ray(context, workers))


def _on_ray(context: Context, workers: int) -> Callable[[Job], None]:
    from pipelines.train.ray_workers import train_on_ray

    gpus = context.settings.encoder.gpus > 0
    return lambda job: train_on_ray(job, workers, gpus)


def _tell(context: Context, report: Report) -> None:
    measures = "".join(f", {name} {value:.3f}" for name, value in report.measures.items())
    context.log.print(
        f"step {report.step:,} of {report.steps:,}: loss {report.loss:.4f}{measures}",
    )
