"""What the HTML pages share: templates that escape their texts, and characters that HTML lacks."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def open_templates(folder: Path) -> Environment:
    """The templates of a folder; texts are escaped, and links can be told by the test `web`."""
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
    """Anything else, such as `javascript:`, is no link."""
    return text.startswith(("https://", "http://"))


def replace_forbidden(page: str) -> str:
    """The page with U+FFFD for every character that HTML cannot hold as text."""
    return _FORBIDDEN.sub("\ufffd", page)
