"""Read PMIDs, PMCIDs and DOIs that are given instead of a question."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from urllib.parse import unquote

_DOI_BEGINS = r"10\.\d{4,9}(?:\.\d{1,9}){0,4}(?:/|%2f)"
_DOI = re.compile(rf"{_DOI_BEGINS}\S+", re.IGNORECASE)
# In `10.1000/x,10.1000/y` the comma is a separator. Other commas and semicolons are part of a DOI.
_SEPARATOR = re.compile(
    rf"[,;|](?={_DOI_BEGINS}|https?://|doi:|(?:dx\.)?doi\.org/|pubmed\.|pmids?(?:[:#]|$)|pmc(?:ids?:|\d))",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"%[\da-f]{2}", re.IGNORECASE)
_LONG_LABEL = re.compile(r"\b(pmc|pubmed)\s?(?:ids?\b\s?:?|:)", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:(pmids?)|(pmc(?:ids?)?)|((?:info:|urn:)?dois?))(?![a-z\d.])[:#=/]{0,3}", re.I
)
_PMC = re.compile(r"pmc(\d{1,9})(?:\.\d{1,3})?", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,9}")
_TAG = re.compile(
    r"\s?\[\s?(?:pmid|uid|doi|aid|lid|article identifier|location id)\s?\]", re.IGNORECASE
)
_PMC_TAG = re.compile(r"\b(?:pmc)?(\d{1,9})\s?\[\s?pmc(?:id)?\s?\]", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?:)?(?://)?(?:www\.)?([a-z.]{6,30})/(\S+)", re.IGNORECASE)
_DOI_HOSTS = ("doi.org", "dx.doi.org")
_PUBMED_HOSTS = ("pubmed.ncbi.nlm.nih.gov", "pubmed.gov")
_ARTICLE_HOSTS = ("ncbi.nlm.nih.gov", "pmc.ncbi.nlm.nih.gov", "europepmc.org")
_PMID_PATH = re.compile(
    r"(?:pubmed/|(?:abstract|article)/med/|(?:pmc/)?articles/pmid/)(\d{1,9})(?![\w.-])", re.I
)
_PMC_PATH = re.compile(r"(?:pmc/)?articles?/(?:pmc/)?pmc(\d{1,9})(?![\w-])", re.IGNORECASE)
_SEARCHED = re.compile(
    r"[\w./]{0,40}\?(?:[^\s#]{0,200}&)?(?:term|list_uids)=(\d{1,9})(?:\[(?:pmid|uid)\])?(?:[&#]|$)",
    re.I,
)
_PAIRS = {")": "(", "]": "[", "}": "{", ">": "<"}
_OPENING = "([{<\"'\u201c\u2018\u00ab"
_TRAILING = ".,;:?!\"'\u201d\u2019\u00bb"
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
    reader = _Reader()
    for piece in _pieces(text):
        if not reader.take(piece):
            return Identifiers()
    return reader.found()


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts of `text` that contain one identifier or one label each."""
    text = " ".join(text.split()).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    text = _LONG_LABEL.sub(_short_label, _TAG.sub(" ", _PMC_TAG.sub(r"PMC\1 ", text)))
    for chunk in text.split():
        whole = "/" in chunk or _ESCAPE.search(chunk)
        yield from _SEPARATOR.split(chunk) if whole else re.split("[,;|]", chunk)


def _short_label(label: re.Match[str]) -> str:
    return "PMCID: " if label[1].lower() == "pmc" else "PMID: "


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


class _Reader:
    """Collects the identifiers of a text. A label applies until the next label or DOI."""

    def __init__(self) -> None:
        self._pmids: dict[int, None] = {}
        self._dois: dict[str, None] = {}
        self._pmcids: dict[str, None] = {}
        self._label = "pmid"

    def found(self) -> Identifiers:
        """Return the identifiers read so far."""
        pmids = tuple(pmid for pmid in self._pmids if pmid)
        return Identifiers(pmids, tuple(self._dois), tuple(self._pmcids))

    def take(self, piece: str) -> bool:
        """Read `piece`; return True if it is an identifier, a label or a conjunction."""
        piece = _bare(piece)
        if piece.casefold() in ("", "and", "or", "&"):
            return True
        if _DOI.fullmatch(piece):
            return self._doi(unquote(piece) if _ESCAPE.search(piece) else piece)
        if pmc := _PMC.fullmatch(piece):
            return self._pmc(pmc[1])
        if _NUMBER.fullmatch(piece):
            return self._number(piece)
        if label := _LABEL.match(piece):
            self._label = "pmid" if label[1] else "pmc" if label[2] else "doi"
            return self.take(piece[label.end() :])
        return self._address(piece)

    def _number(self, digits: str) -> bool:
        if self._label == "pmc":
            return self._pmc(digits)
        self._pmids[int(digits)] = None
        return self._label == "pmid"

    def _pmc(self, digits: str) -> bool:
        self._pmcids[f"PMC{int(digits)}"] = None
        return True

    def _doi(self, doi: str) -> bool:
        self._dois[doi.translate(_LOWER)] = None
        self._label = "pmid"
        return True

    def _address(self, piece: str) -> bool:
        """Read the URL of an article's page; return True if it is one."""
        address = _ADDRESS.fullmatch(piece)
        if not address:
            return False
        host, path = address[1].lower(), address[2]
        if host in _DOI_HOSTS:
            doi = unquote(re.split("[?#]", path)[0]).rstrip("/")
            # The check character of a SICI may be "#", which is not always escaped in URLs.
            doi += "#" if doi.endswith(";2-") and path.endswith("#") else ""
            return bool(_DOI.fullmatch(doi)) and self._doi(doi)
        path = unquote(path)
        if host in _PUBMED_HOSTS and (pmid := re.match(r"(\d{1,9})(?![\w.-])", path)):
            return self._number_of_page(pmid[1])
        if host not in (*_PUBMED_HOSTS, *_ARTICLE_HOSTS):
            return False
        if pmc := _PMC_PATH.match(path):
            return self._pmc(pmc[1])
        pmid = _PMID_PATH.match(path) or _SEARCHED.match(path)
        return self._number_of_page(pmid[1]) if pmid else False

    def _number_of_page(self, digits: str) -> bool:
        self._pmids[int(digits)] = None
        return True
