"""`citeray train writer` and `citeray train namer`: train adapters of small language models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster.answers import Evidence
from cluster.errors import InputError
from cluster.models.adapters import plain_model
from cluster.records import Passage
from cluster.settings.fields import ModelSettings
from commands.context import Config, Context, Json, Overrides, make_context
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
    from pipelines.train.writer.train_writer import Complete


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

    It learns to write gold answers from their snippets, with the prompts that are used for answers.
    """
    from pipelines.train.writer.train_writer import writer_completions

    context = make_context(config, overrides, json)
    recipe = read_recipe(WriterRecipe, "writer", changes or ())
    examples = partial(writer_completions, recipe=recipe, ask=writer_prompt)
    llm = context.settings.llm
    _train(context, "writer", recipe, ("llm", llm), questions, held_out, examples, out, licence)


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
    """Train an adapter of a language model (`namer.model`) to rank names as answers.

    It learns the names of gold answers from sentences of their snippets.
    """
    from pipelines.train.writer.train_writer import namer_completions

    context = make_context(config, overrides, json)
    recipe = read_recipe(NamerRecipe, "namer", changes or ())
    examples = partial(namer_completions, recipe=recipe)
    namer = context.settings.namer
    _train(context, "namer", recipe, ("namer", namer), questions, held_out, examples, out, licence)


def _train(
    context: Context,
    kind: Literal["writer", "namer"],
    recipe: WriterRecipe | NamerRecipe,
    section: tuple[str, ModelSettings],
    questions: list[Path],
    held_out: list[Path] | None,
    examples: Complete,
    out: Path,
    licence: str,
) -> None:
    """Train an adapter of the model that the settings name in `section`, and show its measures."""
    from pipelines.train.writer import train_writer as training

    name, model = section
    if not model.model:
        raise InputError(f"{name}.model: not set; name the language model to train")
    job = training.WriterJob(
        kind=kind,
        recipe=recipe,
        base=plain_model(model),
        sha256=model.sha256,
        questions=whole_paths(questions),
        held_out=whole_paths(held_out),
        examples=examples,
        folder=out.resolve(),
    )
    show_measures(context, training.train_writer(job, licence, context.log.print), job.folder)


def writer_prompt(question: AnsweredQuestion, texts: Sequence[str]) -> list[Message]:
    """Return the prompt of a question, which for yes/no asks to explain the gold answer."""
    evidence = [Evidence(Passage(0, "abstract", 0, len(text), text)) for text in texts]
    values = {
        "question": quote(question.text),
        "evidence": number_passages(evidence, sum(len(text) + 8 for text in texts)),
        "answer": "Yes" if question.stance and question.stance[0] else "No",
    }
    prompt = find_prompt("explain" if question.stance else "ideal", question.kind)
    return prompt.messages((), **{name: values[name] for name in prompt.variables})
