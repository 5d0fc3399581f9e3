"""Call Helm's library in a subprocess.

The library loads the Go runtime, whose signal handlers can end a test process that has loaded
many other native libraries.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, Any

K8S = Path(__file__).resolve().parents[2] / "k8s"


class HelmRefusedError(Exception):
    """Helm's message about wrong values or templates; `kind` is the name of Helm's error class."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def helm(call: str, *args: Any, **options: Any) -> Any:
    """Return the result of one of the calls in `serve`. Raises HelmRefusedError."""
    requests, replies = _process()
    requests.write(json.dumps([call, args, options]) + "\n")
    requests.flush()
    reply = json.loads(replies.readline())
    if "refused" in reply:
        raise HelmRefusedError(reply["refused"], reply["kind"])
    return reply["result"]


@cache
def _process() -> tuple[IO[str], IO[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        cwd=K8S.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    return process.stdin, process.stdout


def serve() -> None:
    """Answer calls from standard input, one JSON line each, until it is closed."""
    import helm_python

    chart = helm_python.Chart.load(K8S)
    calls: dict[str, Callable[..., Any]] = {
        "render": lambda values, **options: chart.render(values, **options),
        "merge_values": chart.merge_values,
        "validate_schema": chart.validate_schema,
        "parse": helm_python.parse_set_string,
    }
    for line in sys.stdin:
        call, args, options = json.loads(line)
        try:
            reply = {"result": calls[call](*args, **options)}
        except helm_python.HelmError as error:
            reply = {"refused": str(error), "kind": type(error).__name__}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve()
