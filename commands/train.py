"""`citeray train`: an adapter, or a whole model, from files of examples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from cluster.errors import InputError
from cluster.models.adapters import plain_model
from cluster.ray.session import ray_session
from cluster.settings.settings import EncoderSettings
from commands.context import Config, Context, Json, Overrides, make_context
from pipelines.build.find_sources import find_sources
from pipelines.train.recipe import ClaimRecipe, ReaderRecipe, Recipe, RetrievalRecipe, read_recipe

if TYPE_CHECKING:
    from pipelines.train.jobs import Job
    from pipelines.train.loop import Report

train = typer.Typer(
    help="Train the small models: adapters of the encoder.",
    no_args_is_help=True,
    add_completion=False,
)

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


@train.command("ner")
def train_ner(
    texts: Annotated[list[Path], typer.Argument(help="JSON lines of text and entities.")],
    out: Out,
    held_out: HeldOut = None,
    changes: Changes = None,
    licence: Licence = "",
    workers: Workers = 0,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """A recogniser of the entities that the texts mark.

    A file that marks some types only says nothing of the others.
    """
    from pipelines.train.jobs import TagJob

    context = make_context(config, overrides, json)
    recipe = read_recipe(Recipe, "ner", changes or ())
    base = _plain(context)
    job = TagJob(recipe, base, _whole(texts), _whole(held_out), out.resolve())
    _run(context, job, licence, workers)


@train.command("nli")
def train_nli(
    claims: Annotated[list[Path], typer.Argument(help="JSON lines of claim, evidence, label.")],
    out: Out,
    changes: Changes = None,
    licence: Licence = "",
    workers: Workers = 0,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """A checker of claims against evidence: SUPPORT, CONTRADICT or NEUTRAL.

    The recipe's share of the claims, with all their evidence, is measured on.
    """
    from pipelines.train.jobs import ClaimJob

    context = make_context(config, overrides, json)
    recipe = read_recipe(ClaimRecipe, "nli", changes or ())
    job = ClaimJob(recipe, _plain(context), _whole(claims), out.resolve())
    _run(context, job, licence, workers)


@train.command("encoder")
def train_encoder(
    questions: Questions,
    corpus: Corpus,
    out: Out,
    held_out: HeldOut = None,
    changes: Changes = None,
    licence: Licence = "",
    workers: Workers = 0,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """The encoder's adapter for dense search and late interaction.

    An index must be built anew to be searched with it.
    """
    context = make_context(config, overrides, json)
    _retrieval(context, "encoder", questions, corpus, out, held_out, changes, licence, workers)


@train.command("reranker")
def train_reranker(
    questions: Questions,
    corpus: Corpus,
    out: Out,
    held_out: HeldOut = None,
    changes: Changes = None,
    licence: Licence = "",
    workers: Workers = 0,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """The late-interaction reranker's own adapter; the index stays as it is."""
    context = make_context(config, overrides, json)
    _retrieval(context, "reranker", questions, corpus, out, held_out, changes, licence, workers)


@train.command("reader")
def train_reader(
    questions: Annotated[list[Path], typer.Argument(help="BioASQ files with gold answers.")],
    corpus: Corpus,
    out: Out,
    held_out: HeldOut = None,
    changes: Changes = None,
    licence: Licence = "",
    workers: Workers = 0,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Train the reader, which answers from the evidence where no language model does.

    It learns relevance, yes/no stances, names of the asked type and summary sentences from the
    questions' snippets, exact and ideal answers.
    """
    from pipelines.train.jobs import ReaderJob

    context = make_context(config, overrides, json)
    recipe = read_recipe(ReaderRecipe, "reader", changes or ())
    sources = tuple(find_sources(corpus))
    asked, held = _whole(questions), _whole(held_out)
    job = ReaderJob(recipe, _plain(context), asked, held, sources, out.resolve())
    _run(context, job, licence, workers)


@train.command("average")
def train_average(
    adapters: Annotated[list[Path], typer.Argument(help="Folders of `citeray train`.")],
    out: Out,
    rank: Annotated[int, typer.Option(min=1, max=512, help="Rank of the result.")] = 128,
) -> None:
    """Make several trainings of one model into one adapter, which errs less than each."""
    from pipelines.train.average import average_adapters

    average_adapters(adapters, out, rank)
    typer.echo(out)


def _retrieval(
    context: Context,
    kind: str,
    questions: list[Path],
    corpus: list[str],
    out: Path,
    held_out: list[Path] | None,
    changes: list[str] | None,
    licence: str,
    workers: int,
) -> None:
    from pipelines.train.jobs import RetrievalJob

    recipe = read_recipe(RetrievalRecipe, kind, changes or ())
    if not recipe.dense_scale and not recipe.maxsim_scale:
        raise InputError("dense_scale and maxsim_scale are both 0: there is nothing to learn")
    if kind == "reranker" and recipe.rank == 0:
        raise InputError("rank is 0: late interaction takes an adapter of the encoder's model")
    sources = tuple(find_sources(corpus))
    base = _plain(context)
    asked, held = _whole(questions), _whole(held_out)
    job = RetrievalJob(kind, recipe, base, asked, held, sources, out.resolve())
    _run(context, job, licence, workers)


def _plain(context: Context) -> EncoderSettings:
    """The encoder without the adapter that it may come with: each training begins there."""
    encoder = context.settings.encoder
    model = plain_model(encoder)
    kept = encoder.sha256 if model == encoder.model else ""
    return encoder.model_copy(update={"model": model, "adapter": "", "sha256": kept})


def _whole(paths: list[Path] | None) -> tuple[Path, ...]:
    """Whole paths: workers may run elsewhere."""
    return tuple(path.resolve() for path in paths or ())


def _run(context: Context, job: Job, licence: str, workers: int) -> None:
    from pipelines.train.run_job import run_job

    if workers > job.recipe.batch:
        raise InputError(
            f"{workers} workers for batches of {job.recipe.batch}: take fewer, or a larger batch "
            "(--with batch=...)"
        )
    tell = partial(_tell, context)
    if workers == 0:
        measured = run_job(job, licence, tell)
    else:
        context.log.print(
            f"{workers} workers; how they stand is in {job.folder}/.training/log.jsonl"
        )
        with ray_session(context.settings.ray):
            measured = run_job(job, licence, tell, _on_ray(context, workers))
    if context.json:
        context.print_json({"folder": str(job.folder), "measured": measured})
        return
    table = Table("measure", "value")
    for name, value in measured.items():
        table.add_row(name, f"{value:.3f}")
    context.out.print(table)
    context.out.print(str(job.folder), soft_wrap=True)


def _on_ray(context: Context, workers: int) -> Callable[[Job], None]:
    from pipelines.train.ray_workers import train_on_ray

    gpus = context.settings.encoder.gpus > 0
    return lambda job: train_on_ray(job, workers, gpus)


def _tell(context: Context, report: Report) -> None:
    measures = "".join(f", {name} {value:.3f}" for name, value in report.measures.items())
    context.log.print(
        f"step {report.step:,} of {report.steps:,}: loss {report.loss:.4f}{measures}",
        soft_wrap=True,
    )
