"""Parts of a citation for all reference formats: names, dates, links and URLs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cluster.records import RETRACTED_LINKS, Author, Citation, Link, bare_doi

# Suffixes after given names in NLM's citations (NLM, Citing Medicine, chapter 1).
SUFFIXES = frozenset({"Jr", "Sr", "2nd", "3rd", "4th", "5th", "6th", "II", "III", "IV", "V", "VI"})
_INITIAL = re.compile(r"[^\W\d_](?:(?![A-Z])[^\W\d_])*")
# Characters that end a line in some parsers, and those that UTF-8 or XML cannot represent.
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]+")

# For each RefType of NLM: tag in the MEDLINE format, and the words that PubMed shows.
LINK_WORDS = {
    "CommentIn": ("CIN", "Comment in"),
    "CommentOn": ("CON", "Comment on"),
    "CorrectedandRepublishedFrom": ("CRF", "Corrected and republished from"),
    "CorrectedandRepublishedIn": ("CRI", "Corrected and republished in"),
    "ErratumFor": ("EFR", "Erratum for"),
    "ErratumIn": ("EIN", "Erratum in"),
    "ExpressionOfConcernFor": ("ECF", "Expression of concern for"),
    "ExpressionOfConcernIn": ("ECI", "Expression of concern in"),
    "OriginalReportIn": ("ORI", "Original report in"),
    "PartialRetractionIn": ("PRIN", "Partial retraction in"),
    "PartialRetractionOf": ("PROF", "Partial retraction of"),
    "RepublishedFrom": ("RPF", "Republished from"),
    "RepublishedIn": ("RPI", "Republished in"),
    "RetractedandRepublishedFrom": ("RRF", "Retracted and republished from"),
    "RetractedandRepublishedIn": ("RRI", "Retracted and republished in"),
    "RetractionIn": ("RIN", "Retraction in"),
    "RetractionOf": ("ROF", "Retraction of"),
    "SummaryForPatientsIn": ("SPIN", "Summary for patients in"),
    "UpdateIn": ("UIN", "Update in"),
    "UpdateOf": ("UOF", "Update of"),
}
RETRACTED = "Retracted article"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class PersonName:
    """A person's name in the three parts of reference formats; "" for a missing part."""

    last: str
    given: str
    suffix: str


def one_line(text: str) -> str:
    """Replace line breaks and control characters by spaces; keep other white space."""
    return _BREAKS.sub(" ", text).strip()


def person_name(author: Author) -> PersonName:
    """Return the parts of a person's name, with initials if the given names are unknown.

    Given names without a last name become `last`, which every format requires.
    """
    given, suffix = _without_suffix(author)
    if not given:
        given = spaced_initials(author)
    last = one_line(author.last)
    return PersonName(last or given, given if last else "", suffix)


def spaced_initials(author: Author) -> str:
    """Return the initials without a suffix, such as "J. B.", or ""."""
    words = one_line(author.initials).split(" ")
    if len(words) > 1 and words[-1] in SUFFIXES:
        words = words[:-1]
    return " ".join(f"{letter}." for word in words for letter in _INITIAL.findall(word))


def _without_suffix(author: Author) -> tuple[str, str]:
    """Return (given names, suffix). A suffix must end both the given names and the initials."""
    fore, initials = one_line(author.fore).split(" "), one_line(author.initials).split(" ")
    last = fore[-1]
    if last in SUFFIXES and initials[-1] == last and (len(initials) > 1 or len(fore) == 1):
        return " ".join(fore[:-1]), last
    return " ".join(fore), ""


def full_name(author: Author) -> str:
    """Return the name on one line: "Last, Given, Suffix", or the name of a group."""
    if author.collective:
        return one_line(author.collective)
    name = person_name(author)
    return ", ".join(part for part in (name.last, name.given, name.suffix) if part)


def short_name(author: Author) -> str:
    """Return the name as in PubMed's AU field, such as "Doe JB Jr"; group names are unchanged."""
    if author.collective:
        return one_line(author.collective)
    return one_line(f"{author.last} {author.initials or author.fore}")


def link_words(link: Link) -> str:
    """Describe a link, as in "Retraction in: J Urol. 2002;1:2. PMID: 1"."""
    pmid = f"PMID: {link.pmid}" if link.pmid else ""
    place = ". ".join(part for part in (one_line(link.source).rstrip("."), pmid) if part)
    words = LINK_WORDS.get(link.kind, ("", one_line(link.kind)))[1]
    return f"{words}: {place}" if place else words


def retraction_words(citation: Citation) -> str:
    """Describe a retraction and its notices; "" if the article is not retracted."""
    if not citation.retracted:
        return ""
    notices = [link_words(link) for link in citation.links if link.kind in RETRACTED_LINKS]
    return "; ".join([RETRACTED, *notices])


def major_topics(citation: Citation) -> list[str]:
    """Return the names of the MeSH headings that are major topics of the article."""
    return [one_line(heading.name) for heading in citation.mesh if heading.major]


def subjects(citation: Citation) -> list[str]:
    """Return MeSH headings, then the authors' keywords, without duplicates."""
    names = [heading.name for heading in citation.mesh]
    return list(dict.fromkeys(one_line(n) for n in (*names, *citation.keywords) if n.strip()))


def pubmed_url(pmid: int) -> str:
    """Return the URL of a record in PubMed."""
    return f"https://pubmed.ncbi.nlm.nih.gov/{pmid}/"


def doi_of(citation: Citation) -> str:
    """Return the DOI, without the resolver that indexes of earlier versions may contain."""
    return bare_doi(one_line(citation.doi))


def publication_date(citation: Citation) -> str:
    """Return year and month in NLM's form, such as "2002 Jul", or "" if the year is unknown."""
    if citation.year is None:
        return ""
    month = f" {MONTHS[citation.month - 1]}" if citation.month else ""
    return f"{citation.year}{month}"


def title_text(citation: Citation) -> str:
    """Return the title for reference managers, without PubMed's full stop at the end.

    Returns "" if PubMed has only a placeholder.
    """
    title = one_line(citation.title) if citation.has_title else ""
    return title if title.endswith("..") else title.removesuffix(".")
