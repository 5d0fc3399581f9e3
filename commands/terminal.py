"""Console output of the commands; the only module that creates consoles.

Rich replaces `:100:` with an emoji and reads `[b]` as markup. Titles, questions, file names and
error messages contain both, so printed text is never interpreted. Set styles with the `style`
argument or `rich.text.Text`.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from io import StringIO, TextIOWrapper
from typing import Any, TextIO, cast

from rich.console import Console
from rich.progress import TextColumn

from cluster.errors import CiteRayError


class OutputError(CiteRayError):
    """Standard output cannot be written, for example because the disk is full."""


def make_console(file: TextIO | None = None) -> Console:
    """Return a console for results, on standard output unless `file` is given."""
    return Console(file=file, markup=False, emoji=False)


def make_log_console(*, quiet: bool = False) -> Console:
    """Return a console for progress and messages, on standard error, without line wrapping.

    A `quiet` one prints nothing.
    """
    return Console(
        stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True, quiet=quiet
    )


def render(print_to: Callable[[Console], None]) -> str:
    """Return what `print_to` prints, as text without styles, wrapped as on the terminal."""
    text = StringIO()
    console = make_console(text)
    print_to(console)
    return text.getvalue()


def make_text_column(text: str) -> TextColumn:
    """Return a progress column; `text` is a format string with the fields of the task."""
    return TextColumn(text, markup=False)


class StandardOutput:
    """Standard output that raises OutputError instead of OSError when writing fails.

    A closed pipe still raises BrokenPipeError, which rich and typer handle.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `text` and return its length."""
        try:
            return self._stream.write(text)
        except OSError as error:
            raise _output_error(error) from error

    def flush(self) -> None:
        """Write buffered text."""
        try:
            self._stream.flush()
        except OSError as error:
            raise _output_error(error) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def prepare_output() -> None:
    """Allow standard output and standard error to receive any text.

    Unpaired surrogates, which files may contain, are written as backslash escapes. Unless standard
    output is a terminal, it is UTF-8, so that redirected exports are UTF-8 in every locale.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdout, TextIOWrapper):
        if not sys.stdout.isatty():
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        sys.stdout = cast(TextIO, StandardOutput(sys.stdout))


def finish_output() -> None:
    """Flush standard output at exit.

    Raises OutputError if writing fails, and SystemExit if the reader has closed the pipe. Otherwise
    the interpreter would report the error with a traceback and exit code 120.
    """
    if sys.stdout is None:  # Closed by the caller, as by `>&-`.
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_buffer()
        raise SystemExit(1) from None
    except OutputError:
        _discard_buffer()
        raise


def _discard_buffer() -> None:
    """Send buffered text to the null device."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _output_error(error: OSError) -> Exception:
    if error.errno == errno.EPIPE:
        return error
    return OutputError(
        f"standard output: cannot be written to: {error.strerror or error}; send the output to a "
        "place with free space"
    )
