"""Details of citations and answers that help a reader to weigh the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from cluster.notices import has_erratum, notice_words, shown_links
from cluster.records import Citation, Link
from cluster.study_design.design_classifier import classify_design
from cluster.study_design.designs import Design, DesignSource

Sort = Literal["relevance", "date", "design"]


# No `slots=True`, because `WeighedCitation` inherits from two classes, and only one may have slots.
@dataclass(frozen=True, kw_only=True)
class Weighed:
    """Details of a citation's record by which its evidence can be weighed.

    `design` is the study design, `design_from` the source of this information ("" if there is none
    and `design` is "other"). `subjects` are the subjects studied: people, animals by species, in
    vitro. `erratum` is whether a later notice corrects the article; `notice` states in a sentence
    that it was retracted, corrected or subject to an expression of concern, "" otherwise. `links`
    are the record's links to notices and comments.
    """

    design: Design = "other"
    design_from: DesignSource = ""
    subjects: tuple[str, ...] = ()
    erratum: bool = False
    notice: str = ""
    links: tuple[Link, ...] = ()


def weighed(citation: Citation) -> dict[str, Any]:
    """Return the fields of `Weighed` for a citation, as keyword arguments."""
    design = classify_design(citation)
    return {
        "design": design.name,
        "design_from": design.source,
        "subjects": design.subjects,
        "erratum": has_erratum(citation),
        "notice": notice_words(citation),
        "links": shown_links(citation),
    }


@dataclass(frozen=True, slots=True)
class WeighedCitation(Weighed, Citation):
    """A whole record with the fields of `Weighed`, and all of its links."""

    @classmethod
    def of(cls, citation: Citation) -> WeighedCitation:
        """Return the record with the fields of `Weighed`."""
        own = {field.name: getattr(citation, field.name) for field in fields(citation)}
        return cls(**{**weighed(citation), **own})


@dataclass(frozen=True, slots=True)
class EvidenceCounts:
    """Number of citations of a result by year and by study design.

    Years are in order, with "unknown" last; designs are ordered by their weight as evidence.
    """

    year: Mapping[str, int] = field(default_factory=dict)
    design: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SideSource:
    """A citation on one side of an answer.

    `quote` is an excerpt of the passage that takes the side, and contains `sentence`, the sentence
    of the source that supports or contradicts the answer.
    """

    pmid: int
    quote: str
    sentence: str
    title: str = ""
    year: int | None = None
    design: Design = "other"
    subjects: tuple[str, ...] = ()
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Sides:
    """The sources for and against a stated answer, each listed once."""

    supporting: tuple[SideSource, ...] = ()
    contradicting: tuple[SideSource, ...] = ()


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the sources that take a stance support the stated answer.

    `share` counts `supporting` of `sources`; `weighted` counts each source by its design, from 1
    for reviews of trials to 0.2 for animals, cells and unknown designs. Both are from 0 to 1. A
    review and the study on the same side that its finding was traced to are one source.
    """

    sources: int
    supporting: int
    share: float
    weighted: float


@dataclass(frozen=True, slots=True)
class ConceptCoverage:
    """Which of the question's linked concepts the cited evidence and the answer name.

    `in_evidence` and `in_answer` are shares of `concepts`, from 0 to 1.
    """

    concepts: tuple[str, ...]
    in_evidence: float
    in_answer: float
    missing_from_evidence: tuple[str, ...] = ()
    missing_from_answer: tuple[str, ...] = ()
