"""`citeray feedback`: list and review feedback on stored answers, and export it as gold."""

from __future__ import annotations

import json as json_form
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from cluster.errors import InputError
from cluster.storage.whole_files import write_atomically
from commands.context import Config, Json, Overrides, make_context
from commands.saved.kept_here import OwnerOption, open_stores
from serve.batches.jobs import when
from serve.saved.opinion import Rating, Review, ReviewState

feedback = typer.Typer(
    help="List, review and export users' feedback on stored answers.",
    no_args_is_help=True,
    add_completion=False,
)


@feedback.command("list")
def list_all(
    owner: OwnerOption = None,
    limit: Annotated[
        int, typer.Option(min=1, max=200, help="Number of entries to list, newest first.")
    ] = 50,
    rating: Annotated[
        Rating | None, typer.Option(help="Show only feedback with this rating.")
    ] = None,
    state: Annotated[
        ReviewState | None,
        typer.Option(help="Show only this review state. Reviewed means accepted or rejected."),
    ] = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """List the newest feedback, with the questions and verdicts that it is about."""
    context = make_context(config, overrides, json)
    found = open_stores(context).feedback.list(owner, limit, rating=rating, state=state)
    if json:
        context.print_json([asdict(item) for item in found])
        return
    if not found:
        context.log.print("no matching feedback; readers can give feedback on stored answers")
    for item in found:
        said, answer = item.opinion, item.answer
        line = f"{when(item.created)} {said.rating:4} {item.owner or '-'} {item.answer_id}"
        context.out.print(f"{line}  {answer['question']['body']}", soft_wrap=True)
        context.out.print(f"    {item.id}: {_review_words(item.review)}", soft_wrap=True)
        for name, value in (("ideal", said.ideal), ("exact", said.exact), ("note", said.note)):
            if value:
                context.out.print(f"    {name}: {value}", soft_wrap=True)


def _review_words(review: Review | None) -> str:
    if review is None:
        return "not reviewed"
    return f"{review.state} {when(review.at)}{f' by {review.by}' if review.by else ''}"


@feedback.command("review")
def review(
    feedback_id: Annotated[
        str, typer.Argument(help="The id that `citeray feedback list` shows before the state.")
    ],
    state: Annotated[
        Literal["accepted", "rejected", "open"],
        typer.Argument(help="The decision; open withdraws an earlier one."),
    ],
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Accept or reject a piece of feedback."""
    context = make_context(config, overrides, json)
    decision = None if state == "open" else state
    item = open_stores(context).feedback.review(feedback_id, decision, "")
    if json:
        context.print_json(asdict(item))
    else:
        context.out.print(f"{item.id}: {_review_words(item.review)}", soft_wrap=True)


@feedback.command("export")
def export(
    output: Annotated[Path, typer.Option("--output", "-o", help="The gold file to write.")],
    owner: OwnerOption = None,
    accepted: Annotated[
        bool, typer.Option("--accepted", help="Export only feedback that a reviewer accepted.")
    ] = False,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Write approved and corrected answers as a BioASQ gold file.

    `citeray evaluate` scores against it, and `citeray remember` takes examples from it. Rejected
    feedback is left out, and so is feedback that calls an answer wrong without correcting it.
    """
    from serve.saved.export_feedback import gold_rows

    context = make_context(config, overrides, json)
    found = open_stores(context).feedback.all(owner, state="accepted" if accepted else None)
    rows = gold_rows(found)
    if not rows:
        raise InputError(
            f"none of the {len(found)} pieces of {'accepted ' if accepted else ''}feedback "
            "approves or corrects an answer; nothing was written"
        )
    text = json_form.dumps({"questions": rows}, ensure_ascii=False, indent=1)
    write_atomically(output, f"{text}\n".encode())
    if json:
        context.print_json({"gold": str(output), "questions": len(rows), "feedback": len(found)})
    else:
        said = f"{len(rows)} questions of {len(found)} pieces of feedback -> {output}"
        context.out.print(said, soft_wrap=True)
