"""Options of the model that judges answers."""

from __future__ import annotations

from typing import Annotated

import typer

from evaluation.answers.find_judge import JUDGE_KEY, OF_SETTINGS

JudgeUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=f"Judge answers (RAGAS) with the model at this OpenAI-compatible URL (key in "
        f'{JUDGE_KEY}), or with models.judge of the settings if "{OF_SETTINGS}".',
    ),
]
JudgeModel = Annotated[str, typer.Option(help="Name of the judge model at its URL.")]
Concurrent = Annotated[int, typer.Option(min=1, max=64, help="Number of questions judged at once.")]
