"""Later notices about a citation: retraction, expression of concern, correction.

NLM does not delete such an article; its record links to the notice (NLM fact sheet "Errata,
Retractions, and Other Linked Citations in PubMed"). The kinds of links are the DTD's RefTypes
(https://dtd.nlm.nih.gov/ncbi/pubmed/doc/out/250101/).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from cluster.records import RETRACTED_LINKS, Citation, Link

Notice = Literal["retracted", "expression of concern", "corrected"]
RETRACTED: Final = "retracted"
DOUBTED: Final = "expression of concern"
CORRECTED: Final = "corrected"

# Kinds of links from an article to a later notice. NLM has counted partial retractions as errata
# since October 2016.
NOTICES: Mapping[str, Notice] = {
    **dict.fromkeys(RETRACTED_LINKS, RETRACTED),
    "ExpressionOfConcernIn": DOUBTED,
    "ErratumIn": CORRECTED,
    "CorrectedandRepublishedIn": CORRECTED,
    "PartialRetractionIn": CORRECTED,
    "UpdateIn": CORRECTED,
}
# Kinds of links from a notice to its article. CorrectedandRepublishedFrom and UpdateOf are omitted,
# because such articles report findings of their own.
_NOTICE_OF: Mapping[str, str] = {
    "RetractionOf": "It is the notice that retracts",
    "ExpressionOfConcernFor": "It is an expression of concern about",
    "ErratumFor": "It is a correction of",
}
# Kinds of links by which a notice marks another article. A republished article marks the article
# that it replaces.
RETRACTIONS_OF = frozenset({"RetractionOf", "RetractedandRepublishedFrom"})
DOUBTS_OF = frozenset({"ExpressionOfConcernFor"})
_SAID: Mapping[str, str] = {
    RETRACTED: "Retracted",
    DOUBTED: "The journal has published an expression of concern",
    CORRECTED: "Corrected or updated since",
}
_NOTICE_IN: Mapping[str, str] = {
    "RetractionIn": "retraction notice in",
    "RetractedandRepublishedIn": "retracted and republished in",
    "ExpressionOfConcernIn": "expression of concern in",
    "ErratumIn": "erratum in",
    "CorrectedandRepublishedIn": "corrected and republished in",
    "PartialRetractionIn": "partial retraction in",
    "UpdateIn": "update in",
}
# Links to references are not shown: they are many and do not affect an article's validity.
_NOT_SHOWN = "Cites"
MOST_LINKS = 50


def shown_links(citation: Citation) -> tuple[Link, ...]:
    """Return the links of a record to show, later notices first; at most MOST_LINKS."""
    links = [link for link in citation.links if link.kind != _NOT_SHOWN]
    return tuple(sorted(links, key=lambda link: link.kind not in NOTICES)[:MOST_LINKS])


def has_erratum(citation: Citation) -> bool:
    """Return whether a later notice corrects or updates the citation."""
    return any(NOTICES.get(link.kind) == CORRECTED for link in citation.links)


def as_printed(link: Link) -> str:
    """Return a link's kind, printed source and PMID, without those that the record lacks."""
    pmid = f"PMID {link.pmid}" if link.pmid else ""
    return " ".join(part for part in (link.kind, link.source, pmid) if part)


def printed_words(printed: str) -> str:
    """Return the text of `as_printed` with the kind in words: "retraction notice in J PMID 7"."""
    kind, _, where = printed.partition(" ")
    return f"{_NOTICE_IN.get(kind, kind)} {where or 'another article'}"


def notice_words(citation: Citation) -> str:
    """Return the notices about a citation as sentences, the most severe first; "" if none."""
    said = []
    for state, words in _SAID.items():
        links = [link for link in citation.links if NOTICES.get(link.kind) == state]
        if links or (state == RETRACTED and citation.retracted):
            said.append(f"{words}{_where(links)}.")
    for kind, words in _NOTICE_OF.items():
        links = [link for link in citation.links if link.kind == kind]
        if links:
            said.append(f"{words} {_names(links) or 'another article'}.")
    return " ".join(said)


def _where(links: list[Link]) -> str:
    names = _names(links)
    return f": see {names}" if names else ""


def _names(links: list[Link]) -> str:
    """Return the distinct PMIDs of `links` as text; links without a PMID are omitted."""
    return ", ".join(dict.fromkeys(f"PMID {link.pmid}" for link in links if link.pmid))
