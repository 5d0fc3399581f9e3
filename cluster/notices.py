"""What a later notice says of a citation: retraction, expression of concern, correction.

NLM never deletes an article for it: its record links to the notice (NLM fact sheet "Errata,
Retractions, and Other Linked Citations in PubMed"). Kinds are the DTD's RefTypes
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

# The kinds that a later notice leaves on the article itself. NLM has counted partial retractions
# as errata since October 2016.
NOTICES: Mapping[str, Notice] = {
    **dict.fromkeys(RETRACTED_LINKS, RETRACTED),
    "ExpressionOfConcernIn": DOUBTED,
    "ErratumIn": CORRECTED,
    "CorrectedandRepublishedIn": CORRECTED,
    "PartialRetractionIn": CORRECTED,
    "UpdateIn": CORRECTED,
}
# The kinds that a notice itself bears. A correction or an update also reports findings of its own.
_NOTICE_OF: Mapping[str, str] = {
    "RetractionOf": "It is the notice that retracts",
    "ExpressionOfConcernFor": "It is an expression of concern about",
    "ErratumFor": "It is a correction of",
}
_SAID: Mapping[str, str] = {
    RETRACTED: "Retracted",
    DOUBTED: "The journal has published an expression of concern",
    CORRECTED: "Corrected or updated since",
}
# References and comments that an article cites are many and change nothing about it.
_NOT_SHOWN = "Cites"
MOST_LINKS = 50


def shown_links(citation: Citation) -> tuple[Link, ...]:
    """The links of a record that a reader is shown, later notices first; at most MOST_LINKS."""
    links = [link for link in citation.links if link.kind != _NOT_SHOWN]
    return tuple(sorted(links, key=lambda link: link.kind not in NOTICES)[:MOST_LINKS])


def has_erratum(citation: Citation) -> bool:
    """Whether a later notice corrects or updates it."""
    return any(NOTICES.get(link.kind) == CORRECTED for link in citation.links)


def as_printed(link: Link) -> str:
    """A link's kind, its printed place and its PMID, as far as the record has them."""
    pmid = f"PMID {link.pmid}" if link.pmid else ""
    return " ".join(part for part in (link.kind, link.source, pmid) if part)


def notice_words(citation: Citation) -> str:
    """What a reader must know of a citation, in sentences, the worst first; "" for nothing."""
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
    """The notices by PMID; their printed place is another's text, and stands in the links."""
    return ", ".join(dict.fromkeys(f"PMID {link.pmid}" for link in links if link.pmid))
