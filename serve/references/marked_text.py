"""Text with italic and bold stretches, and its forms in plain text, Markdown and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~!&$^])")
# What begins a list or a heading at the head of a line.
_HEAD = re.compile(r"^(\s*)([-+=]|\d+(?=[.)]))")


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text in one type face."""

    text: str
    italic: bool = False
    bold: bool = False


def plain(runs: Iterable[Run]) -> str:
    """The text alone."""
    return "".join(run.text for run in runs)


def escape_markdown(text: str) -> str:
    """`text` so that Markdown shows it as it stands, whatever it holds."""
    return _HEAD.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\1", text))


def markdown(runs: Iterable[Run]) -> str:
    """The text in Markdown."""
    return "".join(_wrapped(escape_markdown(run.text), run, "*", "**") for run in runs)


def as_html(runs: Iterable[Run]) -> str:
    """The text in HTML, of which only `i` and `b` are used."""
    return "".join(_tagged(run) for run in runs)


def _wrapped(text: str, run: Run, italic: str, bold: str) -> str:
    mark = bold * run.bold + italic * run.italic
    core = text.strip()
    if not mark or not core:
        return text
    before, _, after = text.partition(core)
    return f"{before}{mark}{core}{mark[::-1]}{after}"


def _tagged(run: Run) -> str:
    text = html.escape(run.text, quote=False)
    text = f"<i>{text}</i>" if run.italic else text
    return f"<b>{text}</b>" if run.bold else text
