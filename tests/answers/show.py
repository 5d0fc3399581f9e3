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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cluster.answers import Answer, QuestionType
from serve.client.python_client import CiteRay
from tests.answers.collection import LIMIT, SYSTEM, Examiner, build_index, settings_for
from tests.answers.judge import Judgement, judge
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

SHOWN = (*SUITES, *REAL_SUITES)


def questions_of(suite: str) -> list[tuple[Row | RealRow, str, QuestionType]]:
    if suite in REAL_SUITES:
        return [(asked.row, asked.question, asked.type) for asked in load_questions(suite)]
    return [(row, row.question, row.type) for row in load_suite(suite)]


def open_index(suite: str, folder: Path, system: str, sets: Sequence[str]) -> Examiner:
    real = suite in REAL_SUITES
    citations = load_citations(suite) if real else load_collection(load_all_rows())
    index = build_index(folder, citations)
    typer.echo(f"{len(citations)} citations in {index}", err=True)
    return Examiner(settings_for(index, sets), system)


def lines_of(answer: Answer, judgement: Judgement) -> Iterator[str]:
    """Yield what is shown below a question, in at most a few lines."""
    exact = answer.exact
    if isinstance(exact, list):
        exact = "; ".join(" / ".join(names) for names in exact)
    yield f"{answer.verdict}: {exact or '-'}"
    yield from (sentence.text for sentence in answer.ideal[:1])
    if judgement.reason:
        yield judgement.reason
    yield from answer.degraded


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
    outcomes = Counter[str]()
    ask: Callable[..., Answer]
    with ExitStack() as stack:
        if url:
            ask = partial(stack.enter_context(CiteRay(url)).answer, system=system, k=LIMIT)
        else:
            folder = index or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            examiner = open_index(suite, folder, system, sets or ())
            stack.callback(examiner.close)
            ask = examiner.answer
        for row, question, kind in questions_of(suite):
            answer = ask(question, type=kind)
            judgement = judge(row, answer)
            outcomes[judgement.outcome] += 1
            typer.echo(f"{judgement.outcome.upper():9} {row.id}  {question}")
            for line in lines_of(answer, judgement):
                typer.echo(f"          {line}")
    totals = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    typer.echo(f"{suite}: {totals}, of {outcomes.total()}")


if __name__ == "__main__":
    typer.run(show)
