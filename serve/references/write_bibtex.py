"""Write citations in BibTeX (UTF-8), for BibTeX, biblatex and reference managers.

The entry key is `pmid` followed by the PMID, so that it is unique and the same in every file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cluster.pubmed.languages import language_name
from cluster.records import MORE_AUTHORS, Author, Citation, abstract_text
from serve.references.describe_citation import (
    MONTHS,
    doi_of,
    link_words,
    major_topics,
    one_line,
    person_name,
    pubmed_url,
    retraction_words,
    subjects,
    title_text,
)
from serve.references.page_ranges import expand_pages

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\lbrace{}",
    "}": r"\rbrace{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "`": r"\textasciigrave{}",
    **{character: f"\\{character}" for character in "&%$#_"},
}
_ESCAPE = str.maketrans(_ESCAPES)
# Characters that need no escape in a DOI, which biblatex reads literally but BibTeX does not.
_VERBATIM = re.compile(r"[\w./()<>:;+-]*", re.ASCII)
# A comma or an "and" would split a name.
_SPLITS_NAMES = re.compile(r",|\band\b", re.IGNORECASE)


def write_bibtex(citations: Iterable[Citation]) -> str:
    """Return BibTeX entries, each followed by an empty line."""
    return "".join(_entry(citation) for citation in citations)


def _entry(citation: Citation) -> str:
    lines = [f"  {name} = {value}," for name, value in _fields(citation) if value not in ("", "{}")]
    return "\n".join([f"@article{{pmid{citation.pmid},", *lines, "}", "", ""])


def _fields(citation: Citation) -> Iterator[tuple[str, str]]:
    c = citation
    yield "author", _braced(" and ".join(map(_name, c.authors)))
    yield "title", _braced(" ".join(map(_protected, title_text(c).split(" "))))
    yield "journal", _text(c.journal)
    yield "shortjournal", _text(c.journal_abbreviation)
    yield "year", _braced("" if c.year is None else str(c.year))
    yield "month", MONTHS[c.month - 1].lower() if c.month else ""
    yield "volume", _text(c.volume)
    yield "number", _text(c.issue)
    yield "pages", _braced(escape(expand_pages(one_line(c.pages))).replace("-", "--"))
    yield "doi", _braced(_verbatim(doi_of(c)))
    yield "pmid", _braced(str(c.pmid))
    yield "pmcid", _text(c.pmcid)
    yield "url", _braced(pubmed_url(c.pmid))
    yield "language", _text("; ".join(language_name(code) or code for code in c.languages))
    yield "note", _text(retraction_words(c))
    yield "keywords", _text("; ".join(subjects(c)))
    yield "abstract", _text(c.abstract)
    # BibTeX ignores unknown fields, and reference managers import them.
    yield "pubtype", _text("; ".join(c.publication_types))
    yield "majortopics", _text("; ".join(major_topics(c)))
    yield "substances", _text("; ".join(chemical.name for chemical in c.chemicals))
    yield "related-notices", _text("; ".join(map(link_words, c.links)))
    for number, other in enumerate(c.other_abstracts, 1):
        words = f"{other.language}: {abstract_text(other.sections)}"
        yield f"otherabstract{number}", _text(words)


def escape(text: str) -> str:
    """Escape `text` for LaTeX, so that it is printed literally and its braces are balanced."""
    escaped = text.translate(_ESCAPE)
    # LaTeX would print two of these in a row as a ligature.
    return re.sub(r"([-'])(?=\1)", r"\1{}", escaped)


def _text(text: str) -> str:
    return _braced(escape(one_line(text)))


def _braced(value: str) -> str:
    return f"{{{value}}}"


def _verbatim(text: str) -> str:
    line = one_line(text)
    return line if _VERBATIM.fullmatch(line) else escape(line)


def _protected(word: str) -> str:
    """Put a word with capital letters in braces, so that styles do not print it in lower case."""
    return _braced(escape(word)) if any(c.isupper() for c in word) else escape(word)


def _name(author: Author) -> str:
    """Return "Last, Suffix, Given", with braces around parts that BibTeX must not split."""
    if author == MORE_AUTHORS:
        return "others"
    if author.collective:
        return _braced(escape(one_line(author.collective)))
    name = person_name(author)
    if not name.given:
        return _braced(escape(" ".join(part for part in (name.last, name.suffix) if part)))
    return ", ".join(_name_part(p) for p in (name.last, name.suffix, name.given) if p)


def _name_part(part: str) -> str:
    escaped = escape(part)
    return _braced(escaped) if _SPLITS_NAMES.search(part) else escaped
