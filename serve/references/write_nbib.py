"""Write citations in NLM's MEDLINE format, like PubMed's .nbib files.

Tags are those of NLM's "MEDLINE/PubMed Data Element (Field) Descriptions".
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from cluster.records import MORE_AUTHORS, Citation, abstract_text
from serve.references.describe_citation import (
    LINK_WORDS,
    doi_of,
    full_name,
    link_words,
    one_line,
    publication_date,
    short_name,
)

# Wrap only these fields: Bio.Medline reads the second line of any other field as a new value.
_WRAPPED = frozenset({"TI", "AB", "JT", "MH"})
_WIDTH = 82


def write_nbib(citations: Iterable[Citation]) -> str:
    """Return MEDLINE records, separated by empty lines."""
    return "\n".join(map(_record, citations))


def _record(citation: Citation) -> str:
    return "".join(f"{line}\n" for tag, value in _fields(citation) for line in _lines(tag, value))


def _lines(tag: str, value: str) -> list[str]:
    if not value:
        return []
    head = f"{tag:<4}- "
    if tag not in _WRAPPED:
        return [head + value]
    return textwrap.wrap(
        value,
        _WIDTH,
        initial_indent=head,
        subsequent_indent=" " * 6,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _fields(citation: Citation) -> Iterator[tuple[str, str]]:
    c = citation
    yield "PMID", str(c.pmid)
    yield "VI", one_line(c.volume)
    yield "IP", one_line(c.issue)
    yield "DP", publication_date(c)
    yield "TI", one_line(c.title)
    yield "PG", one_line(c.pages)
    yield "LID", f"{doi_of(c)} [doi]" if c.doi else ""
    yield "AB", one_line(c.abstract)
    for author in c.authors:
        if author == MORE_AUTHORS:
            yield "AU", author.collective
        elif author.collective:
            yield "CN", one_line(author.collective)
        else:
            yield "FAU", _full_author(full_name(author))
            yield "AU", short_name(author)
    yield from (("LA", one_line(language)) for language in c.languages)
    yield from (("PT", one_line(kind)) for kind in c.publication_types)
    yield "TA", one_line(c.journal_abbreviation).replace(".", "")
    yield "JT", one_line(c.journal)
    yield from (("NM", one_line(chemical.name)) for chemical in c.chemicals)
    yield from (("MH", _heading(h.name, major=h.major)) for h in c.mesh)
    yield from (("OT", one_line(keyword)) for keyword in c.keywords)
    for other in c.other_abstracts:
        yield "OAB", one_line(abstract_text(other.sections))
        yield "OABL", one_line(other.language)
    yield "PMC", one_line(c.pmcid)
    yield from _links(c)
    yield "AID", f"{doi_of(c)} [doi]" if c.doi else ""
    yield "SO", _source(c)


def _full_author(name: str) -> str:
    """Separate a suffix by a space, as PubMed does: "King, Martin Luther Jr"."""
    last, _, given = name.partition(", ")
    return f"{last}, {given.replace(', ', ' ')}" if given else last


def _heading(name: str, *, major: bool) -> str:
    return f"{'*' if major else ''}{one_line(name)}"


def _links(citation: Citation) -> Iterator[tuple[str, str]]:
    """Yield links under their tags, and links without a tag as general notes (GN)."""
    for link in citation.links:
        words = link_words(link)
        if link.kind in LINK_WORDS:
            yield LINK_WORDS[link.kind][0], words.partition(": ")[2] or words
        else:
            yield "GN", words


def _source(citation: Citation) -> str:
    """Return the line that PubMed shows with a title: journal, date, volume, issue, pages, DOI."""
    c = citation
    journal = one_line(c.journal_abbreviation or c.journal).rstrip(".")
    issue = f"({one_line(c.issue)})" if c.issue else ""
    where = f"{one_line(c.volume)}{issue}"
    dated = ";".join(part for part in (publication_date(c), where) if part)
    dated = ":".join(part for part in (dated, one_line(c.pages)) if part)
    doi = f"doi: {doi_of(c)}." if c.doi else ""
    parts = (f"{journal}." if journal else "", f"{dated}." if dated else "", doi)
    return " ".join(part for part in parts if part)
