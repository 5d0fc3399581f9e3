"""The options of a judge of answers, and the judge that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cluster.settings.settings import Settings
from evaluation.evaluate_run import JUDGE_KEY

if TYPE_CHECKING:
    from evaluation.ablation.judge_runs import RunJudge

JudgeUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=f"RAGAS by the model at this OpenAI-compatible URL; its key in {JUDGE_KEY}.",
    ),
]
JudgeModel = Annotated[str, typer.Option(help="The judge's name at its URL.")]
Concurrent = Annotated[int, typer.Option(min=1, max=64, help="Questions judged at once.")]


def open_judge(url: str, model: str, concurrent: int, settings: Settings) -> RunJudge:
    """The judge, and the settings' encoder, by which answer relevancy compares questions."""
    from evaluation.ablation.judge_runs import RunJudge
    from evaluation.evaluate_run import judge_of

    chat, encode = judge_of(url, model, settings)
    return RunJudge(f"{model} at {url}", chat, encode, concurrent)
