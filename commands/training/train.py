"""`citeray train`: train an adapter or a whole model, and calibrate the confidence of answers."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster.errors import InputError
from cluster.models.adapters import plain_model
from cluster.settings.stages.encoder import EncoderSettings
from cluster.storage.whole_files import write_atomically
from commands.context import Config, Context, Json, Overrides, make_context
from commands.options import Chosen, SystemOption, check_options, open_client
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
from commands.training.train_writer import train_namer, train_writer
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.train.recipe import ReaderRecipe, Recipe, RetrievalRecipe, read_recipe

if TYPE_CHECKING:
    from evaluation.calibrate import Outcome


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

    A file that marks only some entity types does not count as negative evidence for the others.
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


train.command("writer")(train_writer)
train.command("namer")(train_namer)


@train.command("reader")
def train_reader(
    questions: Annotated[list[Path], typer.Argument(help="BioASQ files with gold answers.")],
    corpus: Corpus,
    out: Out,
    base: Annotated[
        str, typer.Option(help="Model to start from, as in configs/models.yaml, or a reader.")
    ],
    abstract_questions: Annotated[
        Path | None, typer.Option(help="Yes/no/maybe questions on abstracts, in PubMedQA's format.")
    ] = None,
    findings: Annotated[
        Path | None, typer.Option(help="JSON lines of trial findings, as in Evidence Inference.")
    ] = None,
    abstracts: Annotated[
        list[str] | None,
        typer.Option(help="PubMed XML of the articles that are asked about: files or globs."),
    ] = None,
    recipe: Annotated[
        Literal["reader", "reader-articles"],
        typer.Option(help="Recipe in configs/training; reader-articles starts from a reader."),
    ] = "reader",
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
    from pipelines.train.reader.make_examples import ReaderData
    from pipelines.train.reader.train_reader import ReaderJob
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
    job = ReaderJob(read_recipe(ReaderRecipe, recipe, changes or ()), model, data, out.resolve())
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
        raise InputError(
            "dense_scale and maxsim_scale are both 0, so nothing would be learned; set one of them "
            "above 0"
        )
    if kind == "reranker" and recipe.rank == 0:
        raise InputError(
            "rank is 0, but late interaction needs an adapter of the encoder's model; set rank "
            "above 0"
        )
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


@train.command("calibration")
def train_calibration(
    questions: Annotated[
        list[Path] | None,
        typer.Argument(help="BioASQ files with gold answers that no model was trained on."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Calibration file to write, for reader.calibration."),
    ] = None,
    outcomes: Annotated[
        list[Path] | None,
        typer.Option(help="Outcomes of earlier runs, such as those of cross-validation."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="File to write the outcomes of these questions to.")
    ] = None,
    unanswerable: Annotated[
        bool,
        typer.Option(help="Count every answer as wrong: the index has no evidence for them."),
    ] = False,
    system: SystemOption = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Calibrate the confidence of answers, on which the error budget is based.

    Answers the questions from the index of the settings, scores each answer, and fits the
    probability that an answer is right for each type of question.
    """
    from evaluation.calibrate import fit_calibration, read_outcomes
    from serve.answer.calibration import DEFAULT, read_calibration

    if out is None and keep is None:
        raise InputError("nothing to write: name a file with --out or --keep")
    if keep and not questions:
        raise InputError("--keep writes the outcomes of questions: name files of questions")
    context = make_context(config, overrides, json)
    found = read_outcomes(outcomes or ())
    if questions:
        chosen = check_options(context, system, "unknown", None)
        found += _ask(chosen, questions, keep, unanswerable=unanswerable)
    if out is None:
        return
    used = read_calibration(context.settings.reader.calibration or DEFAULT)
    made = json_module.dumps(fit_calibration(found, no_weight=used.no_weight), indent=1)
    write_atomically(out, f"{made}\n".encode())
    context.log.print(f"{len(found):,} outcomes -> {out}")


def _ask(
    chosen: Chosen, questions: Sequence[Path], keep: Path | None, *, unanswerable: bool
) -> list[Outcome]:
    from evaluation.calibrate import collect_outcomes, write_outcomes

    asked: list[Outcome] = []
    with open_client(chosen, answers=True) as client:
        try:
            outcomes = collect_outcomes(
                questions, client.answer, chosen.system, unanswerable=unanswerable
            )
            asked.extend(outcomes)
        finally:
            # Store the outcomes even if a request fails.
            if keep and asked:
                write_outcomes(keep, asked)
    return asked
