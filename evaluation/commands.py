"""The commands of evaluation, for the console script."""

from __future__ import annotations

import typer

from evaluation.ablation.ablate_command import ablate
from evaluation.audit.audit_command import audit
from evaluation.evaluate_command import evaluate
from evaluation.lint.lint_command import lint


def register(app: typer.Typer) -> None:
    app.command("evaluate")(evaluate)
    app.command("lint")(lint)
    app.command("ablate")(ablate)
    app.command("audit")(audit)
