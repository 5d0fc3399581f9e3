"""The options of a judge of answers."""

from __future__ import annotations

from typing import Annotated

import typer

from evaluation.answers.find_judge import JUDGE_KEY, OF_SETTINGS

JudgeUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=f"RAGAS by the model at this OpenAI-compatible URL, its key in {JUDGE_KEY}; or "
        f"{OF_SETTINGS}: by their models.judge.",
    ),
]
JudgeModel = Annotated[str, typer.Option(help="The judge's name at its URL.")]
Concurrent = Annotated[int, typer.Option(min=1, max=64, help="Questions judged at once.")]
