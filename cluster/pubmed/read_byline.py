"""What names and places an article in its journal: its authors and its pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.pubmed.read_elements import Element, read_text
from cluster.records import Author

_NAMELESS = Author()


def read_authors(authors: Element) -> tuple[Author, ...]:
    """The authors of an AuthorList in order, without those that have no name or an invalid one.

    NLM keeps a name that it has corrected, marked as invalid, beside the right one.
    """
    found = [
        _author({part.tag: read_text(part) for part in author})
        for author in authors.iterchildren("Author")
        if author.get("ValidYN") != "N"
    ]
    return tuple([author for author in found if author != _NAMELESS])


def _author(parts: Mapping[Any, str]) -> Author:
    fore, initials = parts.get("ForeName", ""), parts.get("Initials", "")
    if suffix := parts.get("Suffix"):
        fore, initials = f"{fore} {suffix}".lstrip(), f"{initials} {suffix}".lstrip()
    return Author(parts.get("LastName", ""), fore, initials, parts.get("CollectiveName", ""))


def read_pages(pagination: Element) -> str:
    """The page range as NLM prints it, else the first and last page as the publisher gave them."""
    parts = {part.tag: read_text(part) for part in pagination}
    start, end = parts.get("StartPage", ""), parts.get("EndPage", "")
    ends = start if end in ("", start) else f"{start}-{end}"
    return parts.get("MedlinePgn") or ends
