"""Helm, in a process of its own.

Its library brings Go's runtime, which takes the signals of the process that loads it: beside all
that a long run of tests has loaded, that process ended without a word.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO, Any

K8S = Path(__file__).resolve().parents[2] / "k8s"


class HelmRefusedError(Exception):
    """What Helm says against values or a template; `kind` is the name of Helm's own error."""

    def __init__(self, said: str, kind: str) -> None:
        super().__init__(said)
        self.kind = kind


def helm(call: str, *args: Any, **options: Any) -> Any:
    """What `call` of `answer` gives. Raises HelmRefusedError where Helm refuses."""
    asks, tells = _process()
    asks.write(json.dumps([call, args, options]) + "\n")
    asks.flush()
    told = json.loads(tells.readline())
    if "refused" in told:
        raise HelmRefusedError(told["refused"], told["kind"])
    return told["given"]


@cache
def _process() -> tuple[IO[str], IO[str]]:
    started = subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=K8S.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert started.stdin
    assert started.stdout
    return started.stdin, started.stdout


def answer() -> None:
    """Answer calls, one a line, until there are no more."""
    import helm_python

    chart = helm_python.Chart.load(K8S)
    calls = {
        "render": lambda values, **options: chart.render(values, **options),
        "merge_values": chart.merge_values,
        "validate_schema": chart.validate_schema,
        "defaults": lambda: chart.values,
        "lint": lambda values, **options: helm_python.lint(K8S, values, **options),
        "parse": helm_python.parse_set_string,
    }
    for line in sys.stdin:
        call, args, options = json.loads(line)
        try:
            told = {"given": calls[call](*args, **options)}
        except helm_python.HelmError as error:
            told = {"refused": str(error), "kind": type(error).__name__}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    answer()
