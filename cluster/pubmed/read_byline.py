"""Read the authors and the pages of an article."""

from __future__ import annotations

from cluster.pubmed.read_elements import Element, read_text
from cluster.records import Author


def read_authors(authors: Element) -> tuple[Author, ...]:
    """Return the authors of an AuthorList in order, without empty and invalid names.

    NLM keeps a misspelt name, marked as invalid, together with the corrected one.
    """
    found = []
    for author in authors:
        if author.tag == "Author" and author.get("ValidYN") != "N":
            named = _read_author(author)
            if named is not None:
                found.append(named)
    return tuple(found)


def _read_author(author: Element) -> Author | None:
    last = fore = initials = suffix = collective = ""
    for part in author:
        tag = part.tag
        if tag == "LastName":
            last = read_text(part)
        elif tag == "ForeName":
            fore = read_text(part)
        elif tag == "Initials":
            initials = read_text(part)
        elif tag == "Suffix":
            suffix = read_text(part)
        elif tag == "CollectiveName":
            collective = read_text(part)
    if suffix:
        fore, initials = f"{fore} {suffix}".lstrip(), f"{initials} {suffix}".lstrip()
    if last or fore or initials or collective:
        return Author(last, fore, initials, collective)
    return None


def read_pages(pagination: Element) -> str:
    """Return the page range as NLM prints it, or else the publisher's first and last page."""
    parts = {part.tag: read_text(part) for part in pagination}
    start, end = parts.get("StartPage", ""), parts.get("EndPage", "")
    ends = start if end in ("", start) else f"{start}-{end}"
    return parts.get("MedlinePgn") or ends
