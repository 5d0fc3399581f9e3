"""The documentation's pages, and the commands that they show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    ROOT / "k8s/README.md",
    ROOT / "pipelines/sample/README.md",
    *sorted(DOCS.rglob("*.md")),
]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
EVERYTHING = "\n".join(TEXTS.values())

FENCED = re.compile(r"^ *```[a-z]*\n(.*?)^ *```$", re.M | re.S)
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
# A prompt or the environment's folder may precede a command; `citeray COMMAND` is a placeholder.
COMMAND = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?citeray (?=\S)(?!COMMAND)")


class Command(NamedTuple):
    """A documented command line of citeray: its page, and its words after `citeray`."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: citeray {shlex.join(self.words)}"


def code_lines(text: str) -> Iterator[str]:
    """Yield each line of code of a page, with continued lines joined."""
    for block in FENCED.findall(text):
        yield from block.replace("\\\n", " ").splitlines()
    for code in INLINE.findall(FENCED.sub("", text)):
        yield " ".join(code.split())


def documented_commands() -> list[Command]:
    found = {
        Command(page, tuple(shlex.split(line[match.end() :], comments=True)))
        for page, text in TEXTS.items()
        for line in code_lines(text)
        if (match := COMMAND.match(line.strip()))
    }
    return sorted(found)


def targets(text: str) -> set[str]:
    """Return the make targets that a text names in its code."""
    lines = (re.match(r"make ([a-z-]+)", line.strip()) for line in code_lines(text))
    return {match[1] for match in lines if match}
