"""Shared code of the HTML pages: escaping templates, and characters that HTML forbids."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def open_templates(folder: Path) -> Environment:
    """Return the templates of a folder; texts are escaped, and the test `web` accepts web links."""
    page = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.tests["web"] = is_web_address
    return page


def is_web_address(text: str) -> bool:
    """Return True for web addresses; others, such as `javascript:`, must not become links."""
    return text.startswith(("https://", "http://"))


def replace_forbidden(page: str) -> str:
    """Replace characters that HTML text cannot contain with U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", page)
