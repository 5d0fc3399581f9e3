"""Read PMIDs, PMCIDs and DOIs that are given instead of a question."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from urllib.parse import unquote

# All patterns apply to text in lower case.
_DOI_BEGINS = r"10\.\d{4,9}(?:\.\d{1,9}){0,4}/"
_HOST = r"(?:(?:https?:)?//)?(?:www\.)?"
_PUBMED = rf"{_HOST}pubmed\.(?:ncbi\.nlm\.nih\.)?gov/"
_SITE = rf"(?:{_PUBMED}|{_HOST}(?:(?:pmc\.)?ncbi\.nlm\.nih\.gov|europepmc\.org)/)"
_PATTERNS = {
    "doi": re.compile(
        # The check character of a SICI may be "#", which is not always escaped in URLs.
        rf"{_HOST}(?:dx\.)?doi\.org/({_DOI_BEGINS}[^\s?#]+?(?:(?<=;2-)#)?)/?(?:[?#]\S*)?"
        rf"|({_DOI_BEGINS}\S+)"
    ),
    "pmc": re.compile(
        r"pmc(\d{1,9})(?:\.\d{1,3})?"
        rf"|{_SITE}(?:pmc/)?articles?/(?:pmc/)?pmc(\d{{1,9}})(?:[^\w-]\S*)?"
    ),
    "pmid": re.compile(
        r"(\d{1,9})"
        rf"|{_PUBMED}(\d{{1,9}})(?:[/?#]\S*)?"
        rf"|{_SITE}(?:pubmed/|(?:abstract|article)/med/|(?:pmc/)?articles/pmid/)"
        r"(\d{1,9})(?:[/?#]\S*)?"
        rf"|{_SITE}[\w./]{{0,40}}\?(?:[^\s#]{{0,200}}&)?(?:term|list_uids)="
        r"(\d{1,9})(?:\[(?:pmid|uid)\])?(?:[&#]\S*)?"
    ),
}
# In `10.1000/x,10.1000/y` the comma is a separator. Other commas and semicolons are part of a DOI.
_SEPARATOR = re.compile(
    rf"[,;|](?={_DOI_BEGINS}|https?://|(?:dx\.)?doi\.org/|pubmed\.|pmc\d)",
)
_TAG = re.compile(r"\s?\[\s?(?:pmid|uid|doi|aid|lid|article identifier|location id)\s?\]")
_PMC_TAG = re.compile(r"\b(?:pmc)?(\d{1,9})\s?\[\s?pmc(?:id)?\s?\]")
_PMC_LABEL = re.compile(r"(?<![\w/.])pmc ?(?:ids?)?[\s:#=]+")
_LABEL = re.compile(
    r"(?<![\w/.])(?:(?:pm(?:c ?)?|pubmed ?)ids?(?=[\s:#=/]|$)|pubmed(?= ?:)"
    r"|(?:info:|urn:)?dois?(?=\W{1,4}(?:10\.|http|dx\.|doi\.)))[\s:#=/]*"
)
_PAIRS = {")": "(", "]": "[", "}": "{", ">": "<"}
_OPENING = "([{<\"'\u201c\u2018\u00ab"
_TRAILING = ".,;:?!\"'\u201d\u2019\u00bb"
# Only the ASCII letters of a DOI are case-insensitive.
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True, slots=True)
class Identifiers:
    """Distinct identifiers, in the order given.

    DOIs are in lower case, because they are case-insensitive. PMCIDs have the form "PMC123".
    """

    pmids: tuple[int, ...] = ()
    dois: tuple[str, ...] = ()
    pmcids: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pmids or self.dois or self.pmcids)

    @property
    def keys(self) -> list[str]:
        """All identifiers as strings: PMIDs, then DOIs, then PMCIDs."""
        return [*map(str, self.pmids), *self.dois, *self.pmcids]


def read_identifiers(text: str) -> Identifiers:
    """Return the identifiers of a text that contains nothing else; otherwise an empty result.

    Labels, PubMed's tags and URLs of doi.org, PubMed, PMC and Europe PMC are recognised.
    """
    found: dict[str, list[str]] = {kind: [] for kind in _PATTERNS}
    for piece in _pieces(text):
        for kind, pattern in _PATTERNS.items():
            if match := pattern.fullmatch(piece):
                found[kind] += filter(None, match.groups())
                break
        else:
            return Identifiers()
    pmids, pmcids = (dict.fromkeys(map(int, found[kind])) for kind in ("pmid", "pmc"))
    return Identifiers(
        tuple(pmid for pmid in pmids if pmid),
        tuple(dict.fromkeys(found["doi"])),
        tuple(f"PMC{number}" for number in pmcids),
    )


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts of `text` between separators and labels, in lower case.

    The label "PMC" or "PMCID" applies to all numbers up to the next label or DOI.
    """
    text = " ".join(html.unescape(text).split()).translate(_LOWER)
    text = _TAG.sub(" ", _PMC_TAG.sub(r"pmc\1 ", text))
    text = _LABEL.sub(" pmid ", _PMC_LABEL.sub(" pmc ", text))
    is_pmc = False
    for chunk in map(unquote, text.split()):
        for piece in _SEPARATOR.split(chunk) if "/" in chunk else re.split("[,;|]", chunk):
            bare = _bare(piece)
            if bare in ("pmc", "pmid"):
                is_pmc = bare == "pmc"
            elif bare not in ("", "and", "or", "&"):
                is_pmc = is_pmc and "/" not in bare
                yield f"pmc{bare}" if is_pmc and bare[0].isdigit() else bare


def _bare(piece: str) -> str:
    """Return `piece` without enclosing brackets and trailing punctuation."""
    piece = piece.lstrip(_OPENING)
    while piece:
        last = piece[-1]
        closes = last in _PAIRS and piece.count(last) > piece.count(_PAIRS[last])
        if last not in _TRAILING and not closes:
            break
        piece = piece[:-1]
    return piece
