"""`citeray train cross-encoder`, and `citeray train pseudo-documents` for its training data."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster.errors import InputError
from cluster.models.adapters import plain_model
from cluster.settings.settings import Settings
from cluster.settings.stages.encoder import EncoderSettings
from commands.context import Config, Json, Overrides, make_context
from commands.training.run_training import (
    Changes,
    Corpus,
    HeldOut,
    Licence,
    Out,
    Workers,
    run_training,
    train_job,
    whole_paths,
)
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.train.recipe import CrossEncoderRecipe, read_recipe

if TYPE_CHECKING:
    from pipelines.train.cross_encoder_job import CrossEncoderJob

# Subfolder of the model trained on gold documents, when the same command then adapts it.
FIRST_STAGE = ".training/trained"

Unanswered = Annotated[list[Path], typer.Argument(help="BioASQ files; gold answers are ignored.")]
Questions = Annotated[
    list[Path] | None,
    typer.Argument(help="BioASQ files with gold documents; omit to adapt --model only."),
]
Written = Annotated[
    list[Path] | None,
    typer.Option(help="Pseudo-document files from `citeray train pseudo-documents`."),
]
Adapt = Annotated[
    list[Path] | None,
    typer.Option(help="BioASQ files of test questions to adapt to; gold answers are ignored."),
]
Model = Annotated[
    str, typer.Option(help="Model to start from (default: the settings' cross-encoder).")
]
Discriminator = Annotated[
    str, typer.Option(help="Cross-encoder that filters the pseudo-documents (default: none).")
]


def train_cross_encoder(
    corpus: Corpus,
    out: Out,
    questions: Questions = None,
    written: Written = None,
    adapt: Adapt = None,
    model: Model = "",
    discriminator: Discriminator = "",
    held_out: HeldOut = None,
    changes: Changes = None,
    licence: Licence = "",
    workers: Workers = 0,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Train a cross-encoder for reranking, following Huang's recipe (BioASQ 12b).

    It learns from gold documents, pseudo-documents and random citations, and with --adapt then from
    the pseudo-documents of test questions. If the settings have no cross-encoder, training starts
    from the encoder's model.
    """
    from pipelines.train.cross_encoder_job import CrossEncoderJob

    if not questions and not adapt:
        raise InputError("no questions: name BioASQ files with gold documents, or --adapt FILE")
    if not written and (adapt or discriminator):
        raise InputError(
            f"--{'adapt' if adapt else 'discriminator'}: needs pseudo-documents; write them with "
            "`citeray train pseudo-documents FILE --out WRITTEN.jsonl` and pass them with --written"
        )
    context = make_context(config, overrides, json)
    job = CrossEncoderJob(
        read_recipe(CrossEncoderRecipe, "cross-encoder", changes or ()),
        _base(context.settings, model),
        whole_paths(questions),
        whole_paths(written),
        whole_paths(held_out),
        tuple(find_sources(corpus)),
        out.resolve(),
        discriminator=discriminator,
    )
    if questions and adapt:
        first = replace(job, folder=job.folder / FIRST_STAGE)
        train_job(context, first, licence, workers)
        job = replace(job, base=_began_from(job.base, f"file:{first.folder}"))
    if adapt:
        job = _adapting(job, whole_paths(adapt))
    run_training(context, job, licence, workers)


def write_pseudo_documents(
    questions: Unanswered,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Output file (JSON lines); an existing one is resumed."),
    ],
    documents: Annotated[int, typer.Option(min=1, help="Documents per question.")] = 1,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Generate documents that answer questions, with the language model at llm.url.

    An interrupted run resumes when run again. A run with another llm.model_id adds that model's
    documents to the same file.
    """
    from pipelines.train.examples.read_questions import read_unanswered
    from pipelines.train.examples.read_written import read_written
    from serve.llm.model_roles import find_model
    from serve.question.write_documents import mend_last_line, write_documents

    context = make_context(config, overrides, json)
    settings = context.settings
    model = find_model(settings, "", settings.llm)
    if model is None:
        raise InputError(
            f"llm.kind {settings.llm.kind}: no language model at a URL; name a running one with "
            "--set llm.kind=url --set llm.url=URL --set llm.model_id=NAME"
        )
    asked = {one.id: one.text for one in read_unanswered(questions)}
    mend_last_line(out)
    name = settings.llm.model_id
    before = read_written([out]) if out.is_file() else []
    have = Counter(one.question for one in before if one.model == name)
    writing = write_documents(
        asked,
        have,
        model,
        name=name,
        count=documents,
        deadline_s=settings.serve.llm.deadline_s,
        file=out,
        tell=lambda done: context.log.print(f"documents written for {done} questions"),
    )
    asyncio.run(writing)
    if json:
        context.print_json({"file": str(out), "questions": len(asked), "documents": documents})
    else:
        context.out.print(f"{documents} x {len(asked)} documents -> {out}", soft_wrap=True)


def _base(settings: Settings, model: str) -> EncoderSettings:
    """Return the model to start from, on the encoder's device: `model`, or that of the settings."""
    encoder, reranker = settings.encoder, settings.reranker
    if model:
        return _began_from(encoder, model)
    chosen = reranker if reranker.kind == "cross-encoder" else encoder
    found = plain_model(chosen)
    return _began_from(encoder, found, chosen.sha256 if found == chosen.model else "")


def _began_from(encoder: EncoderSettings, model: str, sha256: str = "") -> EncoderSettings:
    return encoder.model_copy(update={"model": model, "adapter": "", "sha256": sha256})


def _adapting(job: CrossEncoderJob, questions: tuple[Path, ...]) -> CrossEncoderJob:
    recipe = job.recipe.model_copy(update={"steps": job.recipe.adapt_steps})
    return replace(job, recipe=recipe, questions=questions, adapt=True)
