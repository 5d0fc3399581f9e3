"""`citeray train writer` and `citeray train namer`: train adapters of small language models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster.answers import Evidence
from cluster.errors import InputError
from cluster.models.adapters import plain_model
from cluster.records import Passage
from commands.context import Config, Json, Overrides, make_context
from commands.training.run_training import (
    Changes,
    HeldOut,
    Licence,
    Out,
    show_measures,
    whole_paths,
)
from pipelines.train.recipe import NamerRecipe, WriterRecipe, read_recipe
from serve.llm.chat_form import Message
from serve.llm.prompts import find_prompt, number_passages, quote

if TYPE_CHECKING:
    from pipelines.train.reader.bioasq import AnsweredQuestion


def train_writer(
    questions: Annotated[list[Path], typer.Argument(help="BioASQ files with gold answers.")],
    out: Out,
    held_out: HeldOut = None,
    changes: Changes = None,
    licence: Licence = "",
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Train an adapter of the language model (`llm.model`) to write answers from the evidence.

    It learns gold answers from their snippets, with the words of its prompts.
    """
    from pipelines.train.writer import train_writer as training

    context = make_context(config, overrides, json)
    llm = context.settings.llm
    if not llm.model:
        raise InputError("llm.model: not set; name the language model to train")
    recipe = read_recipe(WriterRecipe, "writer", changes or ())
    job = training.WriterJob(
        kind="writer",
        recipe=recipe,
        base=plain_model(llm),
        sha256=llm.sha256,
        questions=whole_paths(questions),
        held_out=whole_paths(held_out),
        examples=partial(training.writer_completions, recipe=recipe, ask=writer_prompt),
        folder=out.resolve(),
    )
    show_measures(context, training.train_writer(job, licence, context.log.print), job.folder)


def train_namer(
    questions: Annotated[list[Path], typer.Argument(help="BioASQ files with gold answers.")],
    out: Out,
    held_out: HeldOut = None,
    changes: Changes = None,
    licence: Licence = "",
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Train an adapter of a language model (`namer.model`) to name the answers of questions.

    It learns the names of gold answers from sentences of their snippets.
    """
    from pipelines.train.writer import train_writer as training

    context = make_context(config, overrides, json)
    namer = context.settings.namer
    if not namer.model:
        raise InputError("namer.model: not set; name the language model to train")
    recipe = read_recipe(NamerRecipe, "namer", changes or ())
    job = training.WriterJob(
        kind="namer",
        recipe=recipe,
        base=plain_model(namer),
        sha256=namer.sha256,
        questions=whole_paths(questions),
        held_out=whole_paths(held_out),
        examples=partial(training.namer_completions, recipe=recipe),
        folder=out.resolve(),
    )
    show_measures(context, training.train_writer(job, licence, context.log.print), job.folder)


def writer_prompt(question: AnsweredQuestion, texts: Sequence[str]) -> list[Message]:
    """Return the prompt of a question; that of a yes/no question asks to explain the answer."""
    evidence = [Evidence(Passage(0, "abstract", 0, len(text), text)) for text in texts]
    values = {
        "question": quote(question.text),
        "evidence": number_passages(evidence, sum(len(text) + 8 for text in texts)),
        "answer": "Yes" if question.stance and question.stance[0] else "No",
    }
    prompt = find_prompt("explain" if question.stance else "ideal", question.kind)
    return prompt.messages((), **{name: values[name] for name in prompt.variables})
