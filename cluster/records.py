"""What passes between the steps. The same names stand in Arrow, JSON and logs.

Offsets are Unicode code points, end exclusive, into the title or into the
canonical abstract (`Citation.abstract`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

TITLE: Literal["title"] = "title"
ABSTRACT: Literal["abstract"] = "abstract"
SectionName = Literal["title", "abstract"]

QUESTION_TYPES = ("yesno", "factoid", "list", "summary", "unknown")
QuestionType = Literal["yesno", "factoid", "list", "summary", "unknown"]

Verdict = Literal["answered", "mixed", "not_enough_evidence"]
NOT_ENOUGH: Verdict = "not_enough_evidence"

# PubMed's own stand-in where a record has no title.
NO_TITLE = "[Not Available]."

RETRACTED_TYPE = "Retracted Publication"
# The DTD's RefTypes (pubmed_250101.dtd) that a retracted article bears. NLM has counted partial
# retractions as errata since October 2016 (NLM Tech Bull 2016 Sep-Oct;(412):e3).
RETRACTED_LINKS = frozenset({"RetractionIn", "RetractedandRepublishedIn"})


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
    """The canonical abstract: sections joined by one space, `LABEL: text` if labelled.

    This is how BioASQ's gold offsets see an abstract.
    """
    return " ".join(f"{s.label}: {s.text}" if s.label else s.text for s in sections)


def search_text(title: str, abstract: str) -> str:
    """Title, where there is one, and abstract as the one field that BM25 over citations sees."""
    return " ".join(t for t in ("" if title == NO_TITLE else title, abstract) if t)


@dataclass(frozen=True, slots=True)
class Citation:
    """One PubmedArticle. `position` is its ordinal among the records of `source`, from 0."""

    pmid: int
    version: int = 1
    title: str = ""
    sections: tuple[Section, ...] = ()
    other_abstracts: tuple[OtherAbstract, ...] = ()
    journal: str = ""
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
    source: str = ""
    position: int = 0

    @property
    def abstract(self) -> str:
        """The canonical abstract, which offsets refer to; "" where there is none."""
        return abstract_text(self.sections)

    @property
    def has_title(self) -> bool:
        """Whether there is a title other than PubMed's placeholder `NO_TITLE`."""
        return bool(self.title) and self.title != NO_TITLE

    @property
    def search_text(self) -> str:
        """Title and abstract as BM25 over citations indexes them."""
        return search_text(self.title, self.abstract)

    @property
    def retracted(self) -> bool:
        """Whether it was retracted; a notice that retracts another article was not."""
        return RETRACTED_TYPE in self.publication_types or any(
            link.kind in RETRACTED_LINKS for link in self.links
        )


@dataclass(frozen=True, slots=True)
class Deletion:
    """A PMID named by a DeleteCitation element of `source`."""

    pmid: int
    source: str
    position: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that was read and not kept. `reason` is a short fixed word for counting."""

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
        """Stable across rebuilds: it names only what the passage is a span of."""
        return f"{self.pmid}:{self.section}:{self.begin}-{self.end}"


@dataclass(frozen=True, slots=True)
class Entity:
    """A concept found in a question: the matched text, its span, and what else names it."""

    text: str
    begin: int
    end: int
    concept: str
    kind: str
    synonyms: tuple[str, ...] = ()
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class Question:
    """`exclude` are PMIDs that it wants no more, such as those judged in earlier rounds.

    `given` are passages that came with it: where there are any, they alone are its evidence.
    `budget_ms` is how long a reply may take; 0: as long as the settings allow. `guess` asks for
    the best guess where the evidence does not answer, for file formats that force a choice.
    """

    id: str
    body: str
    type: QuestionType = "unknown"
    exclude: tuple[int, ...] = ()
    given: tuple[Passage, ...] = ()
    budget_ms: int = 0
    guess: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that may support an answer, with its scores by stage.

    `stance` is whether it supports or contradicts the answer, which `stance_on` names: "yes",
    "no" or the answer's first sentence. Without an answer it is unknown, on "".
    """

    passage: Passage
    scores: Mapping[str, float] = field(default_factory=dict)
    title: str = ""
    year: int | None = None
    retracted: bool = False
    stance: Literal["support", "contradict", "neutral", "unknown"] = "unknown"
    stance_on: str = ""
    publication_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedCitation:
    """A citation in the order of a search, with its scores by stage."""

    pmid: int
    score: float
    scores: Mapping[str, float] = field(default_factory=dict)
    title: str = ""
    year: int | None = None
    retracted: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer with the 1-3 PMIDs that support it.

    `support` is the support score of its best evidence, 0 to 1; `contradicted` are up to three
    PMIDs whose evidence says otherwise.
    """

    text: str
    pmids: tuple[int, ...]
    support: float
    contradicted: tuple[int, ...] = ()


ExactAnswer = str | list[list[str]] | None
"""`"yes"` or `"no"`; for factoid and list a list of synonym lists; None for summary."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a reply took, of the question's budget (0: none), in ms of the wall clock.

    `rungs` are the steps of the preset's ladder that were searched, in their order.
    """

    budget_ms: int
    ms: float
    rungs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`index_version` is the oldest that any shard read, `last_source` its last source file."""

    question: Question
    system: str
    citations: tuple[RankedCitation, ...]
    evidence: tuple[Evidence, ...]
    snippets: tuple[Passage, ...]
    entities: tuple[Entity, ...]
    degraded: tuple[str, ...]
    coverage: str
    index_version: str
    last_source: str
    timings_ms: Mapping[str, float]
    spent: Spent | None = None


@dataclass(frozen=True, slots=True)
class Guess:
    """The best guess at an answer that the evidence does not support well enough to state."""

    ideal: tuple[Sentence, ...]
    exact: ExactAnswer


@dataclass(frozen=True, slots=True)
class Answer:
    """A cited answer. `origin` says who wrote the ideal answer: the model or the evidence.

    `ideal` and `exact` are what a reader is shown: both are empty where `verdict` is
    not_enough_evidence, and `citations` are then the nearest ones. `mixed` means that sources
    disagree. `confidence`, 0 to 1, is how sure the writer is that its answer is right. `guess`
    is there where the question asks for it and the evidence is not enough.

    `index_version` and `last_source` are those of the search. `supported` justifies the exact
    answer, where the preset asks for it.
    """

    question: Question
    system: str
    ideal: tuple[Sentence, ...]
    exact: ExactAnswer
    origin: Literal["generated", "extractive", "none"]
    citations: tuple[RankedCitation, ...]
    evidence: tuple[Evidence, ...]
    snippets: tuple[Passage, ...]
    entities: tuple[Entity, ...]
    degraded: tuple[str, ...]
    coverage: str
    index_version: str
    last_source: str
    timings_ms: Mapping[str, float]
    supported: tuple[Sentence, ...] = ()
    spent: Spent | None = None
    verdict: Verdict = field(kw_only=True)
    confidence: float = field(kw_only=True)
    guess: Guess | None = field(default=None, kw_only=True)

    @property
    def choice(self) -> Guess:
        """The answer for formats that force a choice: the guess where nothing is stated.

        Raises ValueError where nothing is stated and the question did not ask for a guess.
        """
        if self.verdict == NOT_ENOUGH and self.guess is None:
            raise ValueError(f"question {self.question.id}: no guess; ask with guess=True")
        return self.guess or Guess(self.ideal, self.exact)
