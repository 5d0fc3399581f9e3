"""Write citations in RIS, which EndNote, Zotero and Mendeley import.

Each line has one tag; `TY` is first and `ER` last. Of repeated tags other than AU, KW and N1,
importers keep only the first. Therefore all languages are on one line, separated by semicolons, and
so are all publication types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cluster.records import Citation, abstract_text
from serve.references.describe_citation import (
    RETRACTED,
    doi_of,
    full_name,
    link_words,
    major_topics,
    one_line,
    pubmed_url,
    subjects,
    title_text,
)
from serve.references.page_ranges import first_and_last


def write_ris(citations: Iterable[Citation]) -> str:
    """Return RIS records, each followed by an empty line."""
    return "".join(_record(citation) for citation in citations)


def _record(citation: Citation) -> str:
    lines = [f"{tag}  - {value}" for tag, value in _fields(citation) if value]
    return "\r\n".join(["TY  - JOUR", *lines, "ER  - ", "", ""])


def _fields(citation: Citation) -> Iterator[tuple[str, str]]:
    c = citation
    first, last = first_and_last(one_line(c.pages))
    year = f"{c.year:04}" if c.year is not None else ""
    yield from (("AU", full_name(author)) for author in c.authors)
    yield "TI", title_text(c)
    yield "T2", one_line(c.journal)
    yield "JO", one_line(c.journal)
    yield "J2", one_line(c.journal_abbreviation)
    yield "PY", year
    yield "DA", f"{year}/{c.month:02}//" if year and c.month else ""
    yield "VL", one_line(c.volume)
    yield "IS", one_line(c.issue)
    yield "SP", first
    yield "EP", last
    yield "DO", doi_of(c)
    yield "AN", str(c.pmid)
    yield "C2", one_line(c.pmcid)
    yield "DB", "PubMed"
    yield "LA", "; ".join(map(one_line, c.languages))
    yield "M3", "; ".join(map(one_line, c.publication_types))
    yield "AB", one_line(c.abstract)
    yield from (("KW", subject) for subject in subjects(c))
    yield "UR", pubmed_url(c.pmid)
    yield from (("N1", note) for note in _notes(c))


def _notes(citation: Citation) -> Iterator[str]:
    """Yield notes with the data that RIS has no tag for."""
    if citation.retracted:
        yield RETRACTED
    if first_and_last(pages := one_line(citation.pages))[0] != pages and re.search("[,; ]", pages):
        yield f"Pages: {pages}"
    yield from map(link_words, citation.links)
    if topics := major_topics(citation):
        yield f"Major topics: {'; '.join(topics)}"
    if citation.chemicals:
        yield f"Substances: {'; '.join(one_line(c.name) for c in citation.chemicals)}"
    for other in citation.other_abstracts:
        yield f"Abstract ({other.language}): {one_line(abstract_text(other.sections))}"
