"""PubMed records and passages of them. Arrow tables, JSON and logs use the same field names.

Offsets are Unicode code points, end exclusive, into the title or into the
canonical abstract (`Citation.abstract`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

TITLE: Literal["title"] = "title"
ABSTRACT: Literal["abstract"] = "abstract"
SectionName = Literal["title", "abstract"]


# PubMed's placeholder for a record without a title.
NO_TITLE = "[Not Available]."

# The MeSH descriptor Humans, which NLM's indexers assign to articles about people.
HUMANS_UI = "D006801"

RETRACTED_TYPE = "Retracted Publication"
# Publication types of retraction notices; NLM has used the second name since 2025.
RETRACTION_TYPES = frozenset({"Retraction of Publication", "Retraction Notice"})
RETRACTION_LINK = "RetractionOf"
# RefTypes (pubmed_250101.dtd) of links in a retracted article. NLM has counted partial retractions
# as errata since October 2016 (NLM Tech Bull 2016 Sep-Oct;(412):e3).
RETRACTED_LINKS = frozenset({"RetractionIn", "RetractedandRepublishedIn"})

# Publishers' mark at the beginning of a title, which may precede NLM's own by months. A pattern for
# `re` and for Arrow.
RETRACTED_TITLE = (
    r"^[\[\s]*(?:RETRACTED|Retracted|WITHDRAWN|Withdrawn)"
    r"(?: (?:ARTICLE|Article|PAPER|Paper))?\s?[:\]]"
)
_DOI_PREFIX = re.compile(r"(?:(?:https?:)?//)?(?:(?:dx|www)\.)?doi\.org/|doi:\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Section:
    """One AbstractText element: its label as printed (or "") and its whole text."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class OtherAbstract:
    """An abstract in another language or by another party (NLM: OtherAbstract)."""

    language: str
    kind: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Author:
    """A person (`last`, `fore`, `initials`) or a group (`collective`); missing fields are "".

    A suffix is appended to both `fore` and `initials` ("Martin Luther Jr", "ML Jr"), since NLM's
    citations print it after the given names, never after the family name.
    """

    last: str = ""
    fore: str = ""
    initials: str = ""
    collective: str = ""


# Last author of a list that NLM marks as incomplete, as MEDLINE prints it.
MORE_AUTHORS = Author(collective="et al.")


@dataclass(frozen=True, slots=True)
class MeshHeading:
    """A MeSH descriptor: `ui` is its unique ID (D…); `major` marks a main topic of the article."""

    ui: str
    name: str
    major: bool


@dataclass(frozen=True, slots=True)
class Chemical:
    """A substance in the record's ChemicalList: its MeSH unique ID and its name."""

    ui: str
    name: str


@dataclass(frozen=True, slots=True)
class Link:
    """A CommentsCorrections entry: `kind` is NLM's RefType, such as RetractionIn."""

    kind: str
    pmid: int | None
    source: str


def abstract_text(sections: tuple[Section, ...]) -> str:
    """Return the canonical abstract: sections joined by one space, `LABEL: text` if labelled.

    BioASQ's gold offsets refer to this form of the abstract.
    """
    return " ".join(f"{s.label}: {s.text}" if s.label else s.text for s in sections)


def bare_doi(text: str) -> str:
    """Return a DOI without the resolver or the label that some records have before it."""
    found = _DOI_PREFIX.match(text)
    return text[found.end() :] if found else text


def search_text(title: str, abstract: str) -> str:
    """Return the text that BM25 over citations indexes: any title, then the abstract."""
    return " ".join(t for t in ("" if title == NO_TITLE else title, abstract) if t)


@dataclass(frozen=True, slots=True)
class Citation:
    """One PubmedArticle. `position` is its ordinal among the records of `source`, from 0.

    `authors` are in the order of the byline, with `MORE_AUTHORS` at the end of an incomplete list.
    `pages` is a range as NLM prints it ("2327-36"), or
    the article number where there is none; `journal_abbreviation` is the ISO abbreviation.
    """

    pmid: int
    version: int = 1
    title: str = ""
    sections: tuple[Section, ...] = ()
    other_abstracts: tuple[OtherAbstract, ...] = ()
    authors: tuple[Author, ...] = ()
    journal: str = ""
    journal_abbreviation: str = ""
    volume: str = ""
    issue: str = ""
    pages: str = ""
    year: int | None = None
    month: int | None = None
    languages: tuple[str, ...] = ()
    publication_types: tuple[str, ...] = ()
    mesh: tuple[MeshHeading, ...] = ()
    chemicals: tuple[Chemical, ...] = ()
    keywords: tuple[str, ...] = ()
    doi: str = ""
    pmcid: str = ""
    links: tuple[Link, ...] = ()
    references: tuple[int, ...] | None = ()
    source: str = ""
    position: int = 0

    @property
    def abstract(self) -> str:
        """The canonical abstract, which offsets refer to; "" if there is none."""
        return abstract_text(self.sections)

    @property
    def has_title(self) -> bool:
        """Whether there is a title other than PubMed's placeholder `NO_TITLE`."""
        return bool(self.title) and self.title != NO_TITLE

    @property
    def search_text(self) -> str:
        """The text that BM25 over citations indexes: title and abstract."""
        return search_text(self.title, self.abstract)

    @property
    def retracted(self) -> bool:
        """Whether the article was retracted or withdrawn; False for a notice about another one."""
        return (
            RETRACTED_TYPE in self.publication_types
            or any(link.kind in RETRACTED_LINKS for link in self.links)
            or re.match(RETRACTED_TITLE, self.title) is not None
        )

    @property
    def is_retraction(self) -> bool:
        """Whether the record is the notice that retracts another article."""
        return bool(RETRACTION_TYPES.intersection(self.publication_types)) or any(
            link.kind == RETRACTION_LINK for link in self.links
        )


@dataclass(frozen=True, slots=True)
class Deletion:
    """A PMID in a DeleteCitation element of `source`; `version` 0 deletes any version."""

    pmid: int
    source: str
    position: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that was read but rejected. `reason` is a short fixed word for counting."""

    reason: str
    detail: str
    source: str
    position: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a citation's title or canonical abstract; `text` is exactly that span."""

    pmid: int
    section: SectionName
    begin: int
    end: int
    text: str

    @property
    def id(self) -> str:
        """Identifier that is stable across rebuilds, made of PMID, section and span."""
        return f"{self.pmid}:{self.section}:{self.begin}-{self.end}"


@dataclass(frozen=True, slots=True)
class Entity:
    """A concept found in a question: the matched text, its span, and its synonyms."""

    text: str
    begin: int
    end: int
    concept: str
    kind: str
    synonyms: tuple[str, ...] = ()
    score: float = 1.0
