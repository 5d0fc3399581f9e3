"""`citeray train`: train an adapter, or a whole model, from files of examples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster.errors import InputError
from cluster.models.adapters import plain_model
from cluster.settings.stages.encoder import EncoderSettings
from commands.context import Config, Context, Json, Overrides, make_context
from commands.training.run_training import (
    Changes,
    Corpus,
    HeldOut,
    Licence,
    Out,
    Questions,
    Workers,
    run_training,
    show_measures,
    whole_paths,
)
from commands.training.train_calibration import train_calibration
from commands.training.train_writer import train_writer
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.train.recipe import ReaderRecipe, Recipe, RetrievalRecipe, read_recipe

train = typer.Typer(
    help="Train the small models, and calibrate confidence.",
    no_args_is_help=True,
    add_completion=False,
)


@train.command("ner")
def train_ner(
    texts: Annotated[list[Path], typer.Argument(help="JSON lines with text and entities.")],
    out: Out,
    held_out: HeldOut = None,
    changes: Changes = None,
    licence: Licence = "",
    workers: Workers = 0,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Train an entity recogniser from texts with marked entities.

    A file that marks only some entity types is not used as evidence about the other types.
    """
    from pipelines.train.jobs import TagJob

    context = make_context(config, overrides, json)
    recipe = read_recipe(Recipe, "ner", changes or ())
    base = _plain(context)
    job = TagJob(recipe, base, whole_paths(texts), whole_paths(held_out), out.resolve())
    run_training(context, job, licence, workers)


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
    """Train the encoder's adapter for dense search and late interaction.

    Rebuild the index before searching with the new adapter.
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
    """Train a separate adapter for the late-interaction reranker; the index stays valid."""
    context = make_context(config, overrides, json)
    _retrieval(context, "reranker", questions, corpus, out, held_out, changes, licence, workers)


train.command("calibration")(train_calibration)
train.command("writer")(train_writer)


@train.command("reader")
def train_reader(
    questions: Annotated[list[Path], typer.Argument(help="BioASQ files with gold answers.")],
    corpus: Corpus,
    out: Out,
    base: Annotated[
        str, typer.Option(help="Model to start from, as named in configs/models.yaml.")
    ],
    abstract_questions: Annotated[
        Path | None, typer.Option(help="Yes/no/maybe questions on abstracts, in PubMedQA's format.")
    ] = None,
    findings: Annotated[
        Path | None, typer.Option(help="JSON lines of trial findings, as in Evidence Inference.")
    ] = None,
    abstracts: Annotated[
        list[str] | None,
        typer.Option(help="PubMed XML of the articles in these two data sets: files or globs."),
    ] = None,
    held_out: HeldOut = None,
    changes: Changes = None,
    licence: Licence = "",
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Train the reader, which answers from the evidence when no language model is used.

    It learns relevance, stances on yes/no questions, names and answer sentences.
    """
    from pipelines.train.reader.train_reader import ReaderData, ReaderJob
    from pipelines.train.reader.train_reader import train_reader as train_job

    context = make_context(config, overrides, json)
    data = ReaderData(
        whole_paths(questions),
        tuple(find_sources(corpus)),
        abstract_questions,
        findings,
        tuple(find_sources(abstracts)) if abstracts else (),
        whole_paths(held_out),
    )
    model = _plain(context).model_copy(update={"model": base, "sha256": ""})
    job = ReaderJob(read_recipe(ReaderRecipe, "reader", changes or ()), model, data, out.resolve())
    show_measures(context, train_job(job, licence, context.log.print), job.folder)


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
    asked, held = whole_paths(questions), whole_paths(held_out)
    job = RetrievalJob(kind, recipe, base, asked, held, sources, out.resolve())
    run_training(context, job, licence, workers)


def _plain(context: Context) -> EncoderSettings:
    """Return the encoder settings without an adapter: training starts from the base model."""
    encoder = context.settings.encoder
    model = plain_model(encoder)
    kept = encoder.sha256 if model == encoder.model else ""
    return encoder.model_copy(update={"model": model, "adapter": "", "sha256": kept})
