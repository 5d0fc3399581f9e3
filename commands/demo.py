"""`citeray demo`: run the commands that a user would type, on the sample corpus."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cluster.errors import CiteRayError
from cluster.settings.settings import Settings, load_settings
from commands.context import Context
from serve.client.open_client import HttpClient, endpoint_url
from serve.client.print_answer import print_answer

# Fields of a request, named as the options of `citeray ask`. With a small model no factoid answer
# meets the default error budget; a budget of 1 always shows the best answer.
QUESTIONS: tuple[dict[str, Any], ...] = (
    {
        "question": "Is dabigatran safe in patients with a mechanical heart valve?",
        "type": "yesno",
    },
    {
        "question": "Which EGFR mutation is the main cause of acquired resistance to gefitinib?",
        "type": "factoid",
        "max_wrong": 1,
    },
    {"question": "How does idarucizumab reverse dabigatran?", "type": "summary"},
)
# An additional question if there is a language model, which then writes the answer.
WRITTEN: dict[str, Any] = {**QUESTIONS[-1], "system": "citeray-model"}


# Program that waits until the demo ends, even by SIGKILL, and then removes the folder. Processes
# that the demo started may still write there for some seconds.
_REMOVER = """
import os, shutil, sys, time
sys.stdin.read()
for _ in range(60):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.5)
"""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a temporary folder that is removed after the block, also if this process is killed.

    A separate process in its own session removes it, because Ray may end this process without
    running its `finally` blocks, if a signal also ends Ray's processes.
    """
    folder = tempfile.mkdtemp("-citeray")
    command = [sys.executable, "-I", "-S", "-c", _REMOVER, folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield Path(folder)


def _citeray(
    context: Context, *arguments: str, options: Sequence[str] = (), ray_address: str = ""
) -> None:
    """Show and run a command as a user would, on the Ray cluster at `ray_address` if given."""
    context.log.print(f"$ citeray {' '.join(arguments)}", style="bold")
    command = [sys.executable, "-m", f"{__package__}.cli", *arguments, *options]
    environment = {**os.environ, **({"RAY_ADDRESS": ray_address} if ray_address else {})}
    # With --json, standard output contains only the answers.
    output = sys.stderr if context.json else None
    if subprocess.run(command, check=False, stdout=output, env=environment).returncode != 0:
        raise CiteRayError(f"citeray {arguments[0]} failed; see its messages above")


def _settings(context: Context, index: Path) -> Settings:
    """Return the settings for the demo's index, with enough CPU slots to index and serve."""
    overrides = [*context.overrides, f"index.path={index}"]
    settings = load_settings(context.config, overrides)
    if settings.llm.kind == "vllm" and find_spec("vllm") is None:
        context.log.print("vLLM is not installed; answers are extracted from the evidence")
        overrides.append("llm.kind=none")
        settings = load_settings(context.config, overrides)
    if settings.ray.cpus:
        return settings
    slots = (os.cpu_count() or 1) + math.ceil(settings.serve.llm.cpus)
    return load_settings(context.config, [*overrides, f"ray.cpus={slots}"])


def run_demo(context: Context, keep: Path | None) -> list[dict[str, Any]]:
    """Create and index the sample corpus, start the graph, ask the questions and stop.

    The language model loads while the index is built, because loading takes minutes on a small
    machine.
    """
    # Imported here, because importing Ray takes seconds and only this function needs it.
    from serve.client.run_graph import serving, start_graph

    begun = time.monotonic()
    out = context.out
    with ExitStack() as stack:
        folder = keep or stack.enter_context(scratch_folder())
        settings = _settings(context, folder / "index")
        options = [f for o in context.overrides for f in ("--set", o)]
        options += ["--set", f"index.path={settings.index.path}"]
        if context.config:
            options += ["--config", context.config]
        _citeray(context, "sample", str(folder / "sample"))
        address = stack.enter_context(serving(settings, context.progress))
        source = str(folder / "sample")
        _citeray(context, "index", "build", source, options=options, ray_address=address)
        context.log.print("$ citeray serve", style="bold")
        start_graph(settings, context.progress)
        client = stack.enter_context(
            HttpClient(endpoint_url(settings), settings.serve.request_deadline_s + 10)
        )
        answers = []
        written = () if settings.llm.kind == "none" else (WRITTEN,)
        for asked in (*QUESTIONS, *written):
            flags = " ".join(
                f"--{name.replace('_', '-')} {value}"
                for name, value in asked.items()
                if name != "question"
            )
            context.log.print(f'$ citeray ask "{asked["question"]}" {flags}', style="bold")
            answers.append(client.answer(asked))
            if not context.json:
                print_answer(out, answers[-1])
    context.log.print(f"demo finished in {time.monotonic() - begun:.0f} s")
    return answers
