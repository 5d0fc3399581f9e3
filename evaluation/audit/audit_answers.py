"""Check the citations of stored answers, and what these cite, against the current index.

NLM never deletes a retracted article: it links the record to the notice and adds a publication type
(NLM fact sheet "Errata, Retractions, and Other Linked Citations in PubMed").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cluster.notices import CORRECTED, DOUBTED, NOTICES, RETRACTED, as_printed, printed_words
from cluster.records import RETRACTED_TYPE, TITLE, Citation, Passage
from evaluation.audit.read_answers import StoredAnswer

if TYPE_CHECKING:
    from evaluation.find_citations import CitationLookup

DELETED, REVISED = "deleted", "revised"
CITES_RETRACTED, CITES_DOUBTED = "cites a retracted article", "cites an article in doubt"
KINDS = (RETRACTED, DELETED, DOUBTED, CITES_RETRACTED, CITES_DOUBTED, REVISED, CORRECTED)
"""Kinds of problems, worst first."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A problem of a cited record: its kind, one of `KINDS`, and details."""

    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Concern:
    """A PMID that an answer cites, with its problems, worst first.

    `cited_by` names the sentences, documents, snippets or evidence that cite it. `known` is true if
    the answer itself marks it as retracted or exposed. `record` is the version, source, position
    and year of its current record in the index; None if there is none. `verdict` is that of the
    answer, or "" if it was stored without one.
    """

    answer: str
    place: str
    pmid: int
    kind: str
    reasons: tuple[Reason, ...]
    cited_by: tuple[str, ...]
    answered_from: str
    known: bool
    record: Mapping[str, Any] | None
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Audit:
    """Result of an audit; `concerns` are sorted worst first, then in the order of the answers."""

    index_version: str
    answers: int
    citations: int
    concerns: tuple[Concern, ...]


def audit_answers(answers: Iterable[StoredAnswer], lookup: CitationLookup) -> Audit:
    """Compare each citation of each answer with the index; keep only those with problems."""
    read = citations = 0
    concerns: list[Concern] = []
    for answer in answers:
        read += 1
        citations += len(answer.cited)
        concerns += audit_answer(answer, lookup)
    concerns.sort(key=lambda concern: KINDS.index(concern.kind))
    return Audit(lookup.version, read, citations, tuple(concerns))


def audit_answer(answer: StoredAnswer, lookup: CitationLookup) -> list[Concern]:
    """Return the problems of the citations of one answer, in order."""
    concerns = []
    for pmid, cited_by in answer.cited.items():
        citation = lookup.find(pmid)
        if citation is None:
            reasons = [_absent(answer, lookup.version)]
        else:
            reasons = [*_notices(citation), *_revisions(answer, citation)]
        reasons += _exposed(pmid, lookup, reasons)
        reasons.sort(key=lambda reason: KINDS.index(reason.kind))
        if reasons:
            concerns.append(
                Concern(
                    answer.id,
                    answer.place,
                    pmid,
                    reasons[0].kind,
                    tuple(reasons),
                    tuple(cited_by),
                    answer.version,
                    pmid in answer.retracted or pmid in answer.exposed,
                    _record(citation) if citation else None,
                    answer.verdict,
                )
            )
    return concerns


def _absent(answer: StoredAnswer, version: str) -> Reason:
    since = (
        f", the answer is from {answer.version}" if answer.version else ", or has never been in it"
    )
    return Reason(DELETED, f"no longer in index version {version}{since}")


def _notices(citation: Citation) -> list[Reason]:
    """Return NLM's notices on the article: those that link to it, and its publication type."""
    links = [link for link in citation.links if link.kind in NOTICES]
    reasons = [Reason(NOTICES[link.kind], printed_words(as_printed(link))) for link in links]
    if citation.retracted and all(reason.kind != RETRACTED for reason in reasons):
        reasons.append(Reason(RETRACTED, f"publication type {RETRACTED_TYPE}"))
    return reasons


def _exposed(pmid: int, lookup: CitationLookup, known: list[Reason]) -> list[Reason]:
    """Return the retracted and doubted articles that the article cites, and its own state unless
    its record states it.
    """
    found = []
    for source in lookup.exposure(pmid).exposed:
        if source.state and all(reason.kind != source.state for reason in known):
            found.append(Reason(source.state, "a notice about it is in the index"))
        pairs = ((CITES_RETRACTED, source.retracted), (CITES_DOUBTED, source.doubted))
        found += [Reason(kind, f"cites PMID {', '.join(map(str, p))}") for kind, p in pairs if p]
    return found


def _revisions(answer: StoredAnswer, citation: Citation) -> list[Reason]:
    """Return the stored details of the record that have changed since."""
    quoted = [passage for passage in answer.quoted if passage.pmid == citation.pmid]
    details = dict.fromkeys(detail for p in quoted if (detail := _moved(p, citation)))
    stored = answer.described.get(citation.pmid, {})
    for name, now in (("title", citation.title), ("year", citation.year)):
        if name in stored and stored[name] != now:
            details[f"{name} was {stored[name]!r:.80}, is {now!r:.80}"] = None
    return [Reason(REVISED, detail) for detail in details]


def _moved(passage: Passage, citation: Citation) -> str:
    """Describe how a quotation differs from the current text; "" if it is unchanged.

    The end is not compared, because other systems' run files often count it differently.
    """
    section = citation.title if passage.section == TITLE else citation.abstract
    where = f"{passage.section} {passage.begin}-{passage.end}"
    if section.startswith(passage.text, passage.begin) and passage.begin >= 0:
        return ""
    at = section.find(passage.text)
    return f"quotation of {where} " + (f"is now at {at}" if at >= 0 else "is no longer there")


def _record(citation: Citation) -> Mapping[str, Any]:
    return {name: getattr(citation, name) for name in ("version", "source", "position", "year")}
