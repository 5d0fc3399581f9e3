"""`citeray demo`: the commands a user would type, run on the sample corpus."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cluster.cli import Context
from cluster.errors import CiteRayError
from cluster.settings import load_settings
from serve.client import HttpClient, endpoint_url
from serve.print_answer import print_answer
from serve.run_graph import running_graph

QUESTIONS = (
    ("yesno", "Is Epstein-Barr virus infection followed by a higher risk of multiple sclerosis?"),
    ("factoid", "Which protein do the antibodies of neuromyelitis optica attack?"),
    ("list", "Which drugs can cause haemolysis in people with G6PD deficiency?"),
)


def _citeray(context: Context, *arguments: str, options: Sequence[str] = ()) -> None:
    """Run a command as a user would, showing it first."""
    context.log.print(f"$ citeray {' '.join(arguments)}", style="bold", soft_wrap=True)
    command = [sys.executable, "-m", "cluster.cli", *arguments, *options]
    # With --json, standard output is for the answers alone.
    output = sys.stderr if context.json else None
    if subprocess.run(command, check=False, stdout=output).returncode != 0:
        raise CiteRayError(f"citeray {arguments[0]} failed; its own words are above")


def run_demo(context: Context, keep: Path | None) -> list[dict[str, Any]]:
    """Make and index the sample corpus, start the graph, ask three questions, stop."""
    begun = time.monotonic()
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory("-citeray")))
        options = [f for o in context.overrides for f in ("--set", o)]
        options += ["--set", f"index.path={folder / 'index'}"]
        if context.config:
            options += ["--config", context.config]
        _citeray(context, "sample", str(folder / "sample"))
        _citeray(context, "index", "build", str(folder / "sample"), options=options)
        overrides = [*context.overrides, f"index.path={folder / 'index'}"]
        settings = load_settings(context.config, overrides)
        context.log.print("$ citeray serve", style="bold")
        stack.enter_context(running_graph(settings, context.log))
        client = stack.enter_context(
            HttpClient(endpoint_url(settings), settings.serve.request_deadline_s + 10)
        )
        answers = []
        for question_type, question in QUESTIONS:
            command = f'$ citeray ask "{question}" --type {question_type}'
            context.log.print(command, style="bold", soft_wrap=True)
            answers.append(client.answer({"question": question, "type": question_type}))
            if not context.json:
                print_answer(context.out, answers[-1])
    context.log.print(f"demo finished in {time.monotonic() - begun:.0f} s")
    return answers
