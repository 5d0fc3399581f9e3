"""What names and places an article in its journal: its authors and its pages."""

from __future__ import annotations

from cluster.pubmed.read_elements import Element, read_text
from cluster.records import Author


def read_authors(authors: Element) -> tuple[Author, ...]:
    """The authors of an AuthorList in order, without those that have no name or an invalid one.

    NLM keeps a name that it has corrected, marked as invalid, beside the right one.
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
    """The page range as NLM prints it, else the first and last page as the publisher gave them."""
    parts = {part.tag: read_text(part) for part in pagination}
    start, end = parts.get("StartPage", ""), parts.get("EndPage", "")
    ends = start if end in ("", start) else f"{start}-{end}"
    return parts.get("MedlinePgn") or ends
