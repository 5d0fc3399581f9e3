"""Convert page ranges between NLM's short form "284-7" and the full form "284-287"."""

from __future__ import annotations

import re

# "284-7", "S93-9", "e12-5", "284-287", "S93-S99"; not "2019-06-1", "iii-v" or a DOI.
_RANGE = re.compile(
    r"(?P<letters>[A-Za-z]{0,3})(?P<first>\d+)[-\u2013](?P<again>[A-Za-z]{0,3})(?P<last>\d+)"
)
_ROMAN = re.compile(r"(?P<first>[ivxlcdm]+)[-\u2013](?P<last>[ivxlcdm]+)", re.IGNORECASE)
_PARTS = re.compile(r"([,; ]+)")


def expand_pages(pages: str) -> str:
    """Write each page range in full, "284-7" as "284-287"; leave other text unchanged."""
    return "".join(_expanded(part) for part in _PARTS.split(pages))


def shorten_pages(pages: str) -> str:
    """Write each page range in NLM's form, "284-287" as "284-7"; leave other text unchanged."""
    return "".join(_shortened(part) for part in _PARTS.split(pages))


def first_and_last(pages: str) -> tuple[str, str]:
    """Return the first and last page if `pages` is a single range, or else (`pages`, "")."""
    found = _RANGE.fullmatch(pages.strip())
    if found and _letters_agree(found):
        first, last = _expanded(pages.strip()).split("-")
        return first, last
    roman = _ROMAN.fullmatch(pages.strip())
    return (roman["first"], roman["last"]) if roman else (pages, "")


def _letters_agree(found: re.Match[str]) -> bool:
    return found["again"] in ("", found["letters"])


def _expanded(part: str) -> str:
    found = _RANGE.fullmatch(part)
    if not found or not _letters_agree(found):
        return part
    letters, first, last = found["letters"], found["first"], found["last"]
    missing = len(first) - len(last)
    whole = first[:missing] + last if missing > 0 else last
    return f"{letters}{first}-{letters}{whole}"


def _shortened(part: str) -> str:
    found = _RANGE.fullmatch(part)
    if not found or not _letters_agree(found):
        return part
    letters, first = found["letters"], found["first"]
    last = _expanded(part).rpartition("-")[2].removeprefix(letters)
    same = 0
    if len(first) == len(last) and first != last:
        same = next(i for i, (a, b) in enumerate(zip(first, last, strict=True)) if a != b)
    return f"{letters}{first}-{last[same:]}"
