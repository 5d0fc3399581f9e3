"""Sentences that report another study, and whether an article may be that study.

A sentence may name the study by its first author and year ("Smith et al. (2010)"), by the name of
a trial ("in the SPRINT trial") or by the number of a reference ("[12]"). These are formats; whether
an article supports the sentence is judged by a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cluster.answers import Evidence
from cluster.records import ABSTRACT, Citation, Passage
from cluster.text.name_shapes import names_by_shape
from serve.support.check_names import invented_names
from serve.support.compare_wording import coverage, numbers_agree, read_wording

# An article published online first may have another year in its record.
MAX_YEARS_APART = 1
_AUTHOR = re.compile(
    r"(?:\bby )?\(?\b(?P<author>[^\W\d_][\w'\u2019-]+)(?: and colleagues|,? et al\.?)"
    r"(?P<year>[,\s]*[(\[]?(?:19|20)\d\d[a-z]?)?[)\]]?,?",
)
_TRIAL = re.compile(r"\b[Ii]n the (?P<trial>[A-Z][\w/-]*[A-Z0-9][\w/-]*) (?:trial|study)\b,?")
_NUMBERED = re.compile(r"\s*\[\d{1,3}(?:\s?[,\u2013-]\s?\d{1,3})*\]")


@dataclass(frozen=True, slots=True)
class ReportedStudy:
    """A sentence without the words that name the study, and what they say; "" or None if nothing.

    `cued` is whether the sentence has words that name a study.
    """

    claim: str
    author: str = ""
    year: int | None = None
    trial: str = ""
    cued: bool = False


def read_report(sentence: str) -> ReportedStudy:
    """Return the finding that `sentence` states and how it names the study."""
    author, trial = _AUTHOR.search(sentence), _TRIAL.search(sentence)
    claim = sentence
    for cue in (_AUTHOR, _TRIAL, _NUMBERED):
        claim = cue.sub("", claim)
    year = re.search(r"\d{4}", (author["year"] if author else "") or "")
    return ReportedStudy(
        claim=" ".join(claim.split()) or sentence,
        author=author["author"] if author else "",
        year=int(year[0]) if year else None,
        trial=trial["trial"] if trial else "",
        cued=claim != sentence,
    )


def may_be(study: ReportedStudy, citation: Citation) -> bool:
    """Return True if the citation has all numbers and names of the report, and its author.

    An author or a year that the record lacks is not compared.
    """
    text = citation.search_text
    names = names_by_shape(study.claim)
    return (
        _is_by(study, citation)
        and numbers_agree(read_wording(study.claim), read_wording(text))
        and not invented_names(study.claim, [_whole(citation)], names, "")
    )


def _is_by(study: ReportedStudy, citation: Citation) -> bool:
    if study.year and citation.year and abs(study.year - citation.year) > MAX_YEARS_APART:
        return False
    if not (study.author and citation.authors and citation.authors[0].last):
        return True
    return study.author.casefold() in citation.authors[0].last.casefold().split()


def shared_words(study: ReportedStudy, citation: Citation) -> float:
    """Return the share, 0 to 1, of the content words of the report that the citation has."""
    return coverage(read_wording(study.claim), read_wording(citation.search_text))


def of_trial(study: ReportedStudy, citations: Sequence[Citation]) -> list[Citation]:
    """Return the citations that have the name of the trial; all if none of them has it."""
    named = [c for c in citations if study.trial and study.trial in c.search_text]
    return named or list(citations)


def _whole(citation: Citation) -> Evidence:
    text = citation.abstract
    return Evidence(Passage(citation.pmid, ABSTRACT, 0, len(text), text), title=citation.title)
