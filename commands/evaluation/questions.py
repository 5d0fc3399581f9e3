"""`citeray questions`: select questions of a BioASQ file by topic, type or at random."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from cluster.storage.whole_files import write_atomically
from commands.context import Json, make_context


def questions(
    source: Annotated[Path, typer.Argument(help="File in BioASQ's format, with or without gold.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    keywords: Annotated[
        Path | None,
        typer.Option(help="File with one keyword per line; a question must contain one."),
    ] = None,
    types: Annotated[
        str, typer.Option("--type", help="Types, with commas: yesno, factoid, list, summary.")
    ] = "",
    sample: Annotated[int, typer.Option(min=0, help="Draw this many at random; 0: all.")] = 0,
    seed: Annotated[int, typer.Option(help="Random seed of the draw.")] = 0,
    json: Json = False,
) -> None:
    """Select questions of a BioASQ file by topic, by type or at random.

    The selected rows are copied unchanged, so that a gold file remains a gold file.
    """
    from evaluation.bioasq.read_bioasq import TYPES
    from evaluation.bioasq.select_questions import read_keywords, select_questions

    wanted = [name.strip() for name in types.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in TYPES]:
        raise InputError(f"--type {unknown[0]}: unknown; there are: {', '.join(TYPES)}")
    rows = read_rows(source)
    words = read_keywords(keywords) if keywords else []
    chosen = select_questions(rows, types=wanted, keywords=words, sample=sample, seed=seed)
    text = jsonlib.dumps({"questions": chosen}, ensure_ascii=False, indent=1)
    write_atomically(output, text.encode())
    context = make_context(None, None, json)
    if json:
        context.print_json({"output": str(output), "questions": len(chosen), "of": len(rows)})
    else:
        context.out.print(f"{len(chosen)} of {len(rows)} questions -> {output}", soft_wrap=True)
