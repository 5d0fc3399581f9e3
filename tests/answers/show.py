"""Print each question of a suite with its answer and outcome.

    python -m tests.answers.show yes_no
    python -m tests.answers.show named --index build/answers --set llm.kind=url --set llm.url=... \\
        --set llm.exact_from=model --system citeray-model
    python -m tests.answers.show unanswerable --url http://127.0.0.1:8000

`--index FOLDER` keeps the index for the next call, and `citeray serve` can serve it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from cluster.answers import Answer, QuestionType
from serve.client.python_client import CiteRay
from tests.answers.collection import LIMIT, SYSTEM, Examiner, build_index, settings_for
from tests.answers.judge import judge
from tests.answers.real import load_citations, load_questions
from tests.answers.suite import (
    REAL_SUITES,
    SUITES,
    RealRow,
    Row,
    load_all_rows,
    load_collection,
    load_suite,
)

Asked = tuple[Row | RealRow, str, QuestionType]
Ask = Callable[[str, QuestionType], Answer]
SHOWN = (*SUITES, *REAL_SUITES)
MARKS = {
    "right": "[green]OK[/green]       ",
    "held back": "[yellow]HELD BACK[/yellow]",
    "wrong": "[red]WRONG[/red]    ",
}


def questions_of(suite: str) -> list[Asked]:
    if suite in REAL_SUITES:
        return [(asked.row, asked.question, asked.type) for asked in load_questions(suite)]
    return [(row, row.question, row.type) for row in load_suite(suite)]


def open_endpoint(url: str, system: str, stack: ExitStack) -> Ask:
    client = stack.enter_context(CiteRay(url))
    return lambda question, type: client.answer(question, type=type, system=system, k=LIMIT)


def open_index(suite: str, folder: Path, system: str, sets: Sequence[str]) -> Examiner:
    real = suite in REAL_SUITES
    citations = load_citations(suite) if real else load_collection(load_all_rows())
    index = build_index(folder, citations)
    typer.echo(f"{len(citations)} citations in {index}", err=True)
    return Examiner(settings_for(index, sets), system)


def exact_text(answer: Answer) -> str:
    if isinstance(answer.exact, list):
        return "; ".join(" / ".join(names) for names in answer.exact) or "-"
    return answer.exact or "-"


def print_row(console: Console, asked: Asked, answer: Answer) -> str:
    """Print one question in up to four lines, and return its outcome."""
    row, question, _ = asked
    judgement = judge(row, answer)
    console.print(f"{MARKS[judgement.outcome]} {row.id}  [bold]{escape(question)}[/bold]")
    console.print(f"          {answer.verdict}: {escape(exact_text(answer))}")
    if answer.ideal:
        console.print(f"          {escape(answer.ideal[0].text)}", style="dim")
    if judgement.reason:
        console.print(f"          {escape(judgement.reason)}", style="red")
    for loss in answer.degraded:
        console.print(f"          {escape(loss)}", style="yellow")
    return judgement.outcome


def show(
    suite: Annotated[str, typer.Argument(help=f"One of {', '.join(SHOWN)}.")],
    system: Annotated[str, typer.Option(help="Preset to answer with.")] = SYSTEM,
    url: Annotated[str, typer.Option(help="Ask this endpoint, which serves the index.")] = "",
    index: Annotated[Path | None, typer.Option(help="Folder to keep the index in.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="key=value, repeatable.")] = None,
) -> None:
    """Print each question of SUITE with verdict, exact answer and first sentence."""
    if suite not in SHOWN:
        raise typer.BadParameter(f"{suite}: choose one of {', '.join(SHOWN)}")
    console = Console(soft_wrap=True, highlight=False)
    with ExitStack() as stack:
        if url:
            ask = open_endpoint(url, system, stack)
        else:
            folder = index or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            examiner = open_index(suite, folder, system, sets or ())
            stack.callback(examiner.close)
            ask = examiner.answer
        outcomes = Counter(
            print_row(console, asked, ask(asked[1], asked[2])) for asked in questions_of(suite)
        )
    totals = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in MARKS)
    console.print(f"{suite}: {totals}, of {outcomes.total()}")


if __name__ == "__main__":
    typer.run(show)
