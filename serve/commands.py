"""`citeray search`, `ask`, `answer`, `serve` and `demo`."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from cluster.cli import Config, Context, Json, Overrides, make_context
from cluster.errors import InputError
from cluster.records import QUESTION_TYPES
from cluster.settings import system_names
from serve.client import Client, endpoint_url, local_client, running_client
from serve.print_answer import print_answer, print_search

QuestionArgument = Annotated[str, typer.Argument(help="The question, in plain English.")]
SystemOption = Annotated[
    str | None, typer.Option("--system", help="A preset; the settings' serve.system if not given.")
]
TypeOption = Annotated[
    str, typer.Option("--type", help="yesno, factoid, list or summary; guessed if not given.")
]
KOption = Annotated[int, typer.Option("-k", min=1, max=100, help="How many citations.")]


def register(app: typer.Typer) -> None:
    app.command("search")(search)
    app.command("ask")(ask)
    app.command("answer")(answer)
    app.command("serve")(serve)
    app.command("demo")(demo)


def _check(context: Context, system: str | None, question_type: str = "unknown") -> str:
    """The system to use; InputError for a name that isn't one."""
    chosen = system or context.settings.serve.system
    if chosen not in system_names():
        raise InputError(f"--system {chosen}: unknown; there are: {', '.join(system_names())}")
    if question_type not in QUESTION_TYPES:
        raise InputError(f"--type {question_type}: unknown; there are: {', '.join(QUESTION_TYPES)}")
    return chosen


def _client(context: Context, *, answers: bool) -> Client:
    """The running endpoint where there is one; this process otherwise."""
    settings = context.settings
    found = running_client(settings)
    if found is not None:
        return found
    context.log.print(
        f"no endpoint at {settings.serve.host}:{settings.serve.port}; loading the graph here"
    )
    return local_client(settings, context.log, answers=answers)


def search(
    question: QuestionArgument,
    k: KOption = 10,
    system: SystemOption = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Ranked citations for a question."""
    context = make_context(config, overrides, json)
    chosen = _check(context, system)
    with _client(context, answers=False) as client:
        found = client.search({"question": question, "system": chosen, "k": k})
    if json:
        context.print_json(found)
    else:
        print_search(context.out, found)


def ask(
    question: QuestionArgument,
    question_type: TypeOption = "unknown",
    k: KOption = 10,
    system: SystemOption = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """A cited answer to a question."""
    context = make_context(config, overrides, json)
    chosen = _check(context, system, question_type)
    request = {"question": question, "type": question_type, "system": chosen, "k": k}
    with _client(context, answers=True) as client:
        found = client.answer(request)
    if json:
        context.print_json(found)
    else:
        print_answer(context.out, found)


def answer(
    questions: Annotated[Path, typer.Argument(help="Questions in BioASQ's JSON form.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The run file to write.")],
    file_format: Annotated[str, typer.Option("--format", help="bioasq.")] = "bioasq",
    no_answers: Annotated[
        bool, typer.Option("--no-answers", help="Documents and snippets only; fast.")
    ] = False,
    concurrent: Annotated[int, typer.Option(min=1, max=64, help="Questions at once.")] = 4,
    system: SystemOption = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """A batch of questions to a run file; an interrupted batch goes on where it stopped."""
    from serve.answer_batch import answer_batch
    from serve.formats.bioasq import read_questions

    context = make_context(config, overrides, json)
    if file_format != "bioasq":
        raise InputError(f"--format {file_format}: unknown; there is: bioasq")
    chosen = _check(context, system)
    batch = read_questions(questions)
    begun = time.monotonic()
    with _client(context, answers=not no_answers) as client:
        degraded = answer_batch(
            client, batch, output, chosen, answers=not no_answers, concurrent=concurrent,
            log=context.log,
        )  # fmt: skip
    seconds = round(time.monotonic() - begun, 1)
    summary = {"run": str(output), "questions": len(batch), "seconds": seconds, **degraded}
    if json:
        context.print_json(summary)
    else:
        context.out.print(f"{len(batch)} questions in {seconds} s -> {output}", soft_wrap=True)
        for loss, count in degraded["degraded"].items():
            context.out.print(f"  {loss}: {count}", soft_wrap=True)


def serve(config: Config = None, overrides: Overrides = None) -> None:
    """The endpoint in the foreground, until interrupted."""
    from serve.run_graph import running_graph

    context = make_context(config, overrides, False)
    settings = context.settings
    with running_graph(settings, context.log):
        context.log.print(f"serving at {endpoint_url(settings)} (try /docs); Ctrl-C stops it")
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


def demo(
    config: Config = None,
    overrides: Overrides = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the sample corpus and its index in this folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Sample corpus, index, endpoint, three cited answers; then everything stops."""
    from serve.demo import run_demo

    context = make_context(config, overrides, json)
    answers = run_demo(context, keep)
    if json:
        context.print_json(answers)
