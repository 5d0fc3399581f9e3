"""Run the console script in this process, which is faster than starting another."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from commands.cli import main


def run_here(*arguments: object) -> tuple[int, str, str]:
    """Return (exit code, standard output, standard error) of `citeray ARGUMENTS`."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    argv = ["citeray", *map(str, arguments)]
    with (
        patch.object(sys, "argv", argv),
        patch.dict(os.environ),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    return code, out.getvalue(), err.getvalue()
