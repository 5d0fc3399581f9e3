"""What names and places an article in its journal: its authors and its pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.pubmed.read_elements import Element, read_text
from cluster.records import Author

_NAMES = frozenset({"LastName", "ForeName", "Initials", "Suffix", "CollectiveName"})


def read_authors(authors: Element) -> tuple[Author, ...]:
    """The authors of an AuthorList in order, without those that have no name or an invalid one.

    NLM keeps a name that it has corrected, marked as invalid, beside the right one.
    """
    found = []
    for author in authors:
        if author.tag == "Author" and author.get("ValidYN") != "N":
            # Affiliations, most of an author's XML, are not read.
            names = {part.tag: read_text(part) for part in author if part.tag in _NAMES}
            if any(names.values()):
                found.append(_author(names))
    return tuple(found)


def _author(names: Mapping[Any, str]) -> Author:
    fore, initials = names.get("ForeName", ""), names.get("Initials", "")
    if suffix := names.get("Suffix"):
        fore, initials = f"{fore} {suffix}".lstrip(), f"{initials} {suffix}".lstrip()
    return Author(names.get("LastName", ""), fore, initials, names.get("CollectiveName", ""))


def read_pages(pagination: Element) -> str:
    """The page range as NLM prints it, else the first and last page as the publisher gave them."""
    parts = {part.tag: read_text(part) for part in pagination}
    start, end = parts.get("StartPage", ""), parts.get("EndPage", "")
    ends = start if end in ("", start) else f"{start}-{end}"
    return parts.get("MedlinePgn") or ends
