"""Convert page ranges between NLM's short form "284-7" and the full form "284-287"."""

from __future__ import annotations

import re

# "284-7", "S93-9", "e12-5", "284-287", "S93-S99"; not "2019-06-1", "iii-v" or a DOI.
_RANGE = re.compile(
    r"(?P<letters>[A-Za-z]{0,3})(?P<first>\d+)[-\u2013](?P<again>[A-Za-z]{0,3})(?P<last>\d+)"
)
_ROMAN = re.compile(r"(?P<first>[ivxlcdm]+)[-\u2013](?P<last>[ivxlcdm]+)", re.IGNORECASE)
_FIRST_OF_SEVERAL = re.compile(r"(?P<page>[A-Za-z]{0,3}\d+)[,;]")
# Article numbers, such as e1002195, n71, CD012345 and 104023; not pages such as 184, S12 and iii.
_ARTICLE_NUMBER = re.compile(r"[a-z][a-z\d]*\d[a-z\d]*|[A-Z]{2,}\d{3,}|[A-Z]\d{5,}|\d{6,}")
_PARTS = re.compile(r"([,; ]+)")


def expand_pages(pages: str) -> str:
    """Write each page range in full, "284-7" as "284-287"; leave other text unchanged."""
    return "".join(_expanded(part) for part in _PARTS.split(pages))


def shorten_pages(pages: str) -> str:
    """Write each page range in NLM's form, "284-287" as "284-7"; leave other text unchanged."""
    return "".join(_shortened(part) for part in _PARTS.split(pages))


def first_and_last(pages: str) -> tuple[str, str]:
    """Return the first and last page of the first of several ranges or pages.

    "1194-205; quiz 206-8" has the pages 1194 and 1205. Other text is returned as (`pages`, "").
    """
    head = _PARTS.split(pages.strip())[0]
    found = _RANGE.fullmatch(head)
    if found and _letters_agree(found):
        first, last = re.split("[-\u2013]", _expanded(head))
        return first, last
    if roman := _ROMAN.fullmatch(head):
        return roman["first"], roman["last"]
    single = _FIRST_OF_SEVERAL.match(pages.strip())
    return (single["page"] if single else pages), ""


def is_article_number(pages: str) -> bool:
    """Return whether `pages` is the number of an article instead of a page or a range."""
    return _ARTICLE_NUMBER.fullmatch(pages) is not None


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
