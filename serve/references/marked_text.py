"""Text with italic and bold runs, rendered as plain text, Markdown or HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~!&$^])")
# Characters that start a list or a heading at the beginning of a line.
_HEAD = re.compile(r"^(\s*)([-+=]|\d+(?=[.)]))")


@dataclass(frozen=True, slots=True)
class Run:
    """Run of text with the same formatting."""

    text: str
    italic: bool = False
    bold: bool = False


def plain(runs: Iterable[Run]) -> str:
    """Return the text without formatting."""
    return "".join(run.text for run in runs)


def escape_markdown(text: str) -> str:
    """Escape `text` so that Markdown shows it literally."""
    return _HEAD.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\1", text))


def markdown(runs: Iterable[Run]) -> str:
    """Return the text in Markdown."""
    return "".join(map(_marked, runs))


def as_html(runs: Iterable[Run]) -> str:
    """Return the text in HTML, with only the tags `i` and `b`."""
    return "".join(_tagged(run) for run in runs)


def _marked(run: Run) -> str:
    text = escape_markdown(run.text)
    mark = "**" * run.bold + "*" * run.italic
    core = text.strip()
    if not mark or not core:
        return text
    before, _, after = text.partition(core)
    return f"{before}{mark}{core}{mark}{after}"


def _tagged(run: Run) -> str:
    text = html.escape(run.text, quote=False)
    text = f"<i>{text}</i>" if run.italic else text
    return f"<b>{text}</b>" if run.bold else text
