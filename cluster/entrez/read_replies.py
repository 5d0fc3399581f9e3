"""Parse the replies of E-utilities into results or errors.

E-utilities often report errors with HTTP status 200, so every reply is checked for them
(https://www.ncbi.nlm.nih.gov/books/NBK25499/; the error texts are from bug reports, such as
biopython/biopython#4193 and wcmc-its/ReCiter#324).
"""

from __future__ import annotations

import html
import io
import json
import re
from dataclasses import dataclass
from typing import Any

from cluster.errors import CiteRayError, InputError, PubMedError, SourceError
from cluster.pubmed.parse_articles import parse_stream
from cluster.records import Citation, Rejected

SOURCE = "efetch"
_ERROR_ELEMENT = re.compile(rb"<ERROR>(.*?)</ERROR>", re.DOTALL)
_LOST_HISTORY = re.compile(r"history|webenv|query #|query_key", re.IGNORECASE)
# Internal errors of NCBI, each in the words of the service that failed; the query is not their
# cause.
_TRANSIENT = re.compile(
    r"rate limit|too many requests|time-?d? ?out|temporar|unavailable|try again|overload|busy|"
    r"backend|internal (?:server )?error|server error|gateway|exception|empty response|"
    r"connect|address table|couldn't resolve|read failed|EOF|database is not supported",
    re.IGNORECASE,
)
# Errors that JSON with an unexpected structure may raise.
_MALFORMED = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
_NO_SUCH_IDS = re.compile(r"ID list is empty|no correct IDs|Invalid uid", re.IGNORECASE)


class TransientError(CiteRayError):
    """A transient error. `wait_s` is the delay that the server requested, if any.

    `rate_limited` is True if the server received too many requests from this client.
    """

    def __init__(
        self, message: str, wait_s: float | None = None, rate_limited: bool = False
    ) -> None:
        super().__init__(message, wait_s, rate_limited)
        self.wait_s = wait_s
        self.rate_limited = rate_limited

    def __str__(self) -> str:
        return str(self.args[0])


class HistoryLostError(PubMedError):
    """The history server no longer has a stored search, which must be run again."""


@dataclass(frozen=True, slots=True)
class Found:
    """An esearch reply. `unknown` are the phrases and fields that PubMed did not recognise."""

    count: int
    pmids: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    web_env: str = ""
    query_key: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An efetch reply; `rejected` has the reason for each record that is not a citation."""

    citations: tuple[Citation, ...] = ()
    rejected: tuple[str, ...] = ()


def read_search(reply: bytes) -> Found:
    """Parse esearch's JSON.

    Raises TransientError for a transient error, HistoryLostError, InputError if PubMed refuses the
    query, and PubMedError if it refuses the caller.
    """
    try:
        # NCBI does not escape line feeds in its strings.
        data: Any = json.loads(reply, strict=False)
        if "error" in data:
            raise _refusal(str(data["error"]), InputError)
        result = data["esearchresult"]
        if "ERROR" in result:
            raise _refusal(str(result["ERROR"]), InputError)
        return Found(
            count=int(result["count"]),
            pmids=tuple([int(pmid) for pmid in result["idlist"]]),
            unknown=_unknown(result),
            web_env=str(result.get("webenv", "")),
            query_key=str(result.get("querykey", "")),
        )
    except _MALFORMED as error:
        raise TransientError(f"the reply is not a search result ({_start_of(reply)})") from error


def _unknown(result: dict[str, Any]) -> tuple[str, ...]:
    errors, warnings = result.get("errorlist", {}), result.get("warninglist", {})
    return (
        *errors.get("phrasesnotfound", ()),
        *errors.get("fieldsnotfound", ()),
        *warnings.get("quotedphrasesnotfound", ()),
    )


def read_citations(reply: bytes) -> Fetched:
    """Parse efetch's XML; PMIDs that PubMed does not have are missing from the result.

    Raises TransientError for a transient error or a truncated reply, and PubMedError if NCBI
    refuses the request.
    """
    refused = _refused_fetch(reply)
    if refused and _NO_SUCH_IDS.search(refused):
        return Fetched()
    if refused:
        raise _refusal(refused, PubMedError)
    try:
        records = list(parse_stream(io.BytesIO(reply), SOURCE))
    except SourceError as error:
        raise TransientError(f"the reply is not a complete set of records ({error})") from error
    return Fetched(
        tuple([each for each in records if isinstance(each, Citation)]),
        tuple([each.detail for each in records if isinstance(each, Rejected)]),
    )


def _refused_fetch(reply: bytes) -> str:
    """Return the error in efetch's XML or in the gateway's JSON; "" for a reply with records."""
    if reply.lstrip()[:1] == b"{":
        try:
            return str(json.loads(reply, strict=False)["error"])
        except _MALFORMED:
            return ""
    if b"<PubmedArticleSet" in reply[:4096]:
        return ""
    found = _ERROR_ELEMENT.search(reply)
    return html.unescape(found[1].decode(errors="replace")) if found else ""


def _refusal(text: str, otherwise: type[CiteRayError]) -> CiteRayError:
    """Return the error for NCBI's `text`; `otherwise` is its type for an invalid request."""
    said = " ".join(text.split())[:200]
    if "api key" in said.lower():
        return PubMedError(
            f"E-utilities refuse the API key ({said}); set the environment variable that "
            "entrez.api_key_env names to a valid key, or unset it"
        )
    if "retstart" not in said:
        if _LOST_HISTORY.search(said):
            return HistoryLostError(f"E-utilities have lost a stored search ({said}); search again")
        if _TRANSIENT.search(said):
            return TransientError(said, rate_limited="rate limit" in said.lower())
    return otherwise(f"PubMed refuses the request ({said}); correct the query")


def _start_of(reply: bytes) -> str:
    start = " ".join(reply[:120].decode(errors="replace").split())
    return f"it starts with {start!r}" if start else "it is empty"
