"""What is asked, found and answered. The same names stand in JSON, run files and logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cluster.index.filters.filters import Filters
from cluster.records import Citation, Entity, Passage
from cluster.weighing import (
    Agreement,
    ConceptCoverage,
    EvidenceCounts,
    Sides,
    Sort,
    Weighed,
    weighed,
)

QUESTION_TYPES = ("yesno", "factoid", "list", "summary", "unknown")
QuestionType = Literal["yesno", "factoid", "list", "summary", "unknown"]
Verdict = Literal["answered", "mixed", "not_enough_evidence"]
Check = Literal["drop", "mark", "off"]
NOT_ENOUGH: Verdict = "not_enough_evidence"


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
class Evidence(Weighed):
    """A passage that may support an answer, with its scores by stage; never a retracted one.

    `stance` is whether it supports or contradicts the answer, which `stance_on` names: "yes",
    "no" or the answer's first sentence. Without an answer it is unknown, on "".
    """

    passage: Passage
    scores: Mapping[str, float] = field(default_factory=dict)
    title: str = ""
    year: int | None = None
    stance: Literal["support", "contradict", "neutral", "unknown"] = "unknown"
    stance_on: str = ""
    publication_types: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, passage: Passage, citation: Citation, scores: Mapping[str, float]
    ) -> Evidence | None:
        """The passage of `citation` as evidence; None where that was retracted."""
        if citation.retracted:
            return None
        title, year, types = citation.title, citation.year, citation.publication_types
        return cls(passage, scores, title, year, publication_types=types, **weighed(citation))


@dataclass(frozen=True, slots=True)
class RankedCitation(Weighed):
    """A citation in the order of a search, with its scores by stage."""

    pmid: int
    score: float
    scores: Mapping[str, float] = field(default_factory=dict)
    title: str = ""
    year: int | None = None
    retracted: bool = False

    @classmethod
    def of(cls, citation: Citation, score: float, scores: Mapping[str, float]) -> RankedCitation:
        """The citation as a search ranks it."""
        c = citation
        return cls(c.pmid, score, scores, c.title, c.year, c.retracted, **weighed(c))


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer with the 1-3 PMIDs that support it.

    `support` is the support score of its best evidence, 0 to 1; `contradicted` are up to three
    PMIDs whose evidence says otherwise. One that is `unsupported` is there where the answer's
    check is not "drop", without PMIDs but those that the model itself cites.
    """

    text: str
    pmids: tuple[int, ...]
    support: float
    contradicted: tuple[int, ...] = ()
    unsupported: bool = False


def supported(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    """The sentences without the unsupported ones."""
    return tuple(sentence for sentence in sentences if not sentence.unsupported)


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
class Turn:
    """A question that was asked before in the same conversation, and the answer it got."""

    question: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was made of the words of a question, where that is not what was typed.

    `question` is what was searched and answered. `filters` were read from field tags of the
    question, None for none. `pmids` are those that the question named and the index holds.
    `completed_by` says who completed a follow-up question: the language "model" or "rules". `notes`
    are sentences about what was left out or changed.
    """

    question: str
    filters: Filters | None = None
    pmids: tuple[int, ...] = ()
    completed_by: Literal["", "model", "rules"] = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`index_version` is the oldest that any shard read, `last_source` its last source file.

    `filters` are those under which was searched, None for none. `model_calls` is how often
    the search asked language models. `sort` is the order of `citations` and `evidence`;
    `evidence_by` counts the citations by year and by study design. `understood` is None where the
    question was searched as it was typed. `did_you_mean` is the question with misspelt words
    corrected; None where none is. `filtered_out` says, where the filters leave no article of the
    index, how many there are without each of them; "" otherwise. `candidates` counts the citations
    that each step of the search passed on, by the step's name and in their order.
    """

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
    filters: Filters | None = None
    model_calls: int = 0
    sort: Sort = "relevance"
    evidence_by: EvidenceCounts = field(default_factory=EvidenceCounts)
    understood: Reading | None = None
    did_you_mean: str | None = None
    filtered_out: str = ""
    candidates: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Guess:
    """The best guess at an answer that the evidence does not support well enough to state."""

    ideal: tuple[Sentence, ...]
    exact: ExactAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(SearchResult):
    """What a search found, and the cited answer that was written from it.

    `origin` says who wrote the ideal answer: the model or the evidence. `ideal` and `exact` are
    what a reader is shown: both are empty where `verdict` is not_enough_evidence, and `citations`
    are then the nearest ones. `mixed` means that sources disagree. `confidence`, 0 to 1, is how
    sure the writer is that its answer is right; `signals` are what it is computed from. Where the
    evidence is not enough, `closest` quotes the sentences that come closest to an answer, and
    `guess` is there if the question asks for it.

    `supported` justifies the exact answer, where the preset asks for it. `shown` are the places
    in `evidence`, from 0, of the passages that the language model was shown, in its order: fewer
    than all where no more fit. It is None where no model was asked. `check` is what became of the
    model's sentences that no evidence supports: they were dropped, or only marked and left out of
    account, or marked and counted like the others ("off"). `writing_calls` is how often the writer
    asked its language model. `answer_id` is the id under which the endpoint stored it, "" where it
    did not.

    `caveats` are sentences that a reader needs beside the answer, such as that its sources are
    studies in mice. `sides` are the sources for it and against it, `agreement` how far they agree
    (None where none takes a stance), `concept_coverage` which concepts of the question are named
    (None where the question has none that are linked).
    """

    verdict: Verdict
    confidence: float
    ideal: tuple[Sentence, ...]
    exact: ExactAnswer
    origin: Literal["generated", "extractive", "none"]
    supported: tuple[Sentence, ...] = ()
    guess: Guess | None = None
    closest: tuple[Sentence, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
    shown: tuple[int, ...] | None = None
    check: Check = "drop"
    writing_calls: int = 0
    caveats: tuple[str, ...] = ()
    sides: Sides = field(default_factory=Sides)
    agreement: Agreement | None = None
    concept_coverage: ConceptCoverage | None = None
    answer_id: str = ""

    @property
    def choice(self) -> Guess:
        """The answer for formats that force a choice: the guess where nothing is stated.

        No such format can mark a sentence: unsupported ones are left out unless `check` is "off".

        Raises ValueError where nothing is stated and the question did not ask for a guess.
        """
        if self.verdict == NOT_ENOUGH and self.guess is None:
            raise ValueError(f"question {self.question.id}: no guess; ask with guess=True")
        ideal = self.ideal if self.check == "off" else supported(self.ideal)
        return self.guess or Guess(ideal, self.exact)
