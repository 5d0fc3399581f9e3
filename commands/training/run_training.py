"""Options shared by the `citeray train` commands, and functions to run a training job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cluster.errors import InputError
from cluster.ray.session import ray_session
from commands.context import Context

if TYPE_CHECKING:
    from pipelines.train.jobs import Job
    from pipelines.train.run_trainer import Measures

Out = Annotated[
    Path, typer.Option("--out", "-o", help="Output folder; an interrupted run there is resumed.")
]
HeldOut = Annotated[
    list[Path] | None, typer.Option(help="Held-out files for evaluation, never used for training.")
]
Corpus = Annotated[
    list[str], typer.Option(help="PubMed XML with the gold and other citations: files or globs.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--with", "-w", metavar="KEY=VALUE", help="Override a recipe setting, such as steps=200."
    ),
]
Licence = Annotated[str, typer.Option(help="Licence of the training data, for the model card.")]
Workers = Annotated[
    int, typer.Option(min=0, help="Number of Ray Train workers; 0 trains in this process.")
]
Questions = Annotated[list[Path], typer.Argument(help="BioASQ files with gold documents.")]


def whole_paths(paths: list[Path] | None) -> tuple[Path, ...]:
    """Return absolute paths, because workers may run in another folder."""
    return tuple(path.resolve() for path in paths or ())


def show_measures(context: Context, measured: Measures, folder: Path) -> None:
    """Print the measures of a training job and its output folder."""
    if context.json:
        context.print_json({"folder": str(folder), "measured": measured})
        return
    table = Table("measure", "value")
    for name, value in measured.items():
        table.add_row(name, f"{value:.3f}")
    context.out.print(table)
    context.out.print(str(folder), soft_wrap=True)


def run_training(context: Context, job: Job, licence: str, workers: int) -> None:
    """Train `job` here, or on Ray Train if `workers` is above 0, and show its measures."""
    from pipelines.train.run_job import run_job

    if workers > job.recipe.batch:
        raise InputError(
            f"{workers} workers for batches of {job.recipe.batch}: use fewer, or a larger batch "
            "(--with batch=...)"
        )
    report = context.log.print
    if workers == 0:
        show_measures(context, run_job(job, licence, report), job.folder)
        return
    from pipelines.train.ray_workers import train_on_ray

    report(f"{workers} workers; progress is logged to {job.folder}/.training/log.jsonl")
    gpus = context.settings.encoder.gpus > 0
    with ray_session(context.settings.ray):
        measured = run_job(job, licence, report, lambda job: train_on_ray(job, workers, gpus))
    show_measures(context, measured, job.folder)
