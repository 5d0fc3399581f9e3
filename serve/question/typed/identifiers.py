"""PMIDs and DOIs that stand in the place of a question."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PMID = r"(?:PMIDs?\s*[:#]?\s*)?\d{1,9}(?:\s*\[(?:pmid|uid|PMID|UID)\])?"
_PAGE = r"https?://(?:www\.)?(?:pubmed\.ncbi\.nlm\.nih\.gov|ncbi\.nlm\.nih\.gov/pubmed)/\d{1,9}/?"
_DOI = (
    r"(?:(?:doi\s*[:=]?\s*)|https?://(?:dx\.)?doi\.org/)?10\.\d{4,9}/[^\s\"<>,;]+"
    r"(?:\s*\[(?:doi|aid|DOI|AID)\])?"
)
_ONE = rf"(?:{_PAGE}|{_DOI}|{_PMID})"
_ONLY = re.compile(rf"{_ONE}(?:(?:\s*[,;]\s*|\s+(?:OR\s+|AND\s+|and\s+)?){_ONE})*[\s.?]*", re.I)
_EACH = re.compile(rf"(?P<page>{_PAGE})|(?P<doi>{_DOI})|(?P<pmid>{_PMID})", re.IGNORECASE)
_BARE_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>,;\[]+")
_DIGITS = re.compile(r"\d{1,9}")


@dataclass(frozen=True, slots=True)
class Identifiers:
    """Each once, in the order given; DOIs in lower case, as they do not distinguish case."""

    pmids: tuple[int, ...] = ()
    dois: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pmids or self.dois)


def read_identifiers(text: str) -> Identifiers:
    """The PMIDs and DOIs of a text that holds nothing else; none for any other text."""
    text = " ".join(text.split())
    if not _ONLY.fullmatch(text):
        return Identifiers()
    pmids: dict[int, None] = {}
    dois: dict[str, None] = {}
    for one in _EACH.finditer(text):
        if one["doi"]:
            [doi] = _BARE_DOI.findall(one["doi"])
            dois[doi.rstrip(".?)").lower()] = None
        else:
            found = _DIGITS.findall(one[0])
            pmids[int(found[-1])] = None
    return Identifiers(tuple(p for p in pmids if p), tuple(dois))
