"""Questions, search results and answers. JSON, run files and logs use the same field names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from cluster.appraisal import (
    Agreement,
    ConceptCoverage,
    EvidenceCounts,
    Sides,
    Sort,
    Weighed,
    weighed,
)
from cluster.exposure import Exposure
from cluster.index.filters.filters import Filters
from cluster.records import Citation, Entity, Passage

QUESTION_TYPES = ("yesno", "factoid", "list", "summary", "unknown")
QuestionType = Literal["yesno", "factoid", "list", "summary", "unknown"]
Verdict = Literal["answered", "mixed", "not_enough_evidence"]
Check = Literal["drop", "mark", "off"]
NOT_ENOUGH: Verdict = "not_enough_evidence"


@dataclass(frozen=True, slots=True)
class Question:
    """A question.

    `exclude` are PMIDs to leave out, such as those judged in earlier rounds. `given` are passages
    that came with the question; if there are any, no other evidence is used. `budget_ms` limits
    the time of a reply; 0 applies the limits of the settings. `guess` requests the best guess if
    the evidence is not enough for an answer, for file formats that force a choice.
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
    """A passage that may support an answer, with its scores by stage; never from a retraction.

    `stance` is whether it supports or contradicts the answer in `stance_on`: "yes", "no" or the
    answer's first sentence. Without an answer, `stance` is "unknown" and `stance_on` is "".
    """

    passage: Passage
    scores: Mapping[str, float] = field(default_factory=dict)
    title: str = ""
    year: int | None = None
    stance: Literal["support", "contradict", "neutral", "unknown"] = "unknown"
    stance_on: str = ""
    publication_types: tuple[str, ...] = ()
    journal: str = ""

    @classmethod
    def of(
        cls, passage: Passage, citation: Citation, scores: Mapping[str, float]
    ) -> Evidence | None:
        """Return the passage of `citation` as evidence.

        None if the citation was retracted, or if it is a retraction notice, whose title repeats the
        claim that it retracts.
        """
        if citation.retracted or citation.is_retraction:
            return None
        c, types = citation, citation.publication_types
        return cls(
            passage, scores, c.title, c.year, publication_types=types, journal=_journal(c),
            **weighed(c),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RankedCitation(Weighed):
    """A citation in the ranking of a search, with its scores by stage."""

    pmid: int
    score: float
    scores: Mapping[str, float] = field(default_factory=dict)
    title: str = ""
    year: int | None = None
    retracted: bool = False
    journal: str = ""

    @classmethod
    def of(cls, citation: Citation, score: float, scores: Mapping[str, float]) -> RankedCitation:
        """Return a RankedCitation for `citation`."""
        c = citation
        return cls(c.pmid, score, scores, c.title, c.year, c.retracted, _journal(c), **weighed(c))


def _journal(citation: Citation) -> str:
    """Return the abbreviated name of the journal, or its full name if it has none."""
    return citation.journal_abbreviation or citation.journal


@dataclass(frozen=True, slots=True)
class TracedSource:
    """Origin of a finding that a sentence takes from `via`, a cited article that reports it.

    For `kind` "primary", `pmid` is the study that published the finding first; the sentence cites
    it too. For "secondary", `pmid` is None: no study in the references of `via` was identified.
    """

    kind: Literal["primary", "secondary"]
    via: int
    pmid: int | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer with the 1-3 PMIDs that support it.

    `support` is the support score of its best evidence, 0 to 1; `contradicted` are up to three
    PMIDs whose evidence contradicts it. `unsupported` sentences occur only if the answer's check
    is not "drop", and have only the PMIDs that the model itself cites. `traced` is the origin of a
    finding that the sentence takes from a review; None if it was not traced.
    """

    text: str
    pmids: tuple[int, ...]
    support: float
    contradicted: tuple[int, ...] = ()
    unsupported: bool = False
    traced: TracedSource | None = None


def supported(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    """Return the sentences without the unsupported ones."""
    return tuple(sentence for sentence in sentences if not sentence.unsupported)


ExactAnswer = str | list[list[str]] | None
"""`"yes"` or `"no"`; for factoid and list a list of synonym lists; None for summary."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Wall-clock time of a reply and the question's budget (0: none), in ms.

    `rungs` are the steps of the preset's cascade that were searched, in order.
    """

    budget_ms: int
    ms: float
    rungs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of the same conversation, and its answer."""

    question: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Interpretation:
    """How a question was interpreted, if it was not searched as it was typed.

    `question` is the text that was searched and answered. `filters` were parsed from field tags in
    the question; None if there were none. `pmids` are the PMIDs in the question that are in the
    index. `completed_by` tells whether the language "model" or "rules" completed a follow-up
    question. `notes` are sentences about what was left out or changed.
    """

    question: str
    filters: Filters | None = None
    pmids: tuple[int, ...] = ()
    completed_by: Literal["", "model", "rules"] = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search.

    `index_version` is the oldest version that any shard used, `last_source` its last source file,
    `index_date` the day when it was published (UTC).
    `filters` are the filters of the search; None for none. `model_calls` is the number of calls of
    language models during the search. `sort` is the order of `citations` and `evidence`;
    `evidence_by` counts the citations by year and by study design. `understood` is None if the
    question was searched as it was typed. `did_you_mean` is the question with spelling corrected;
    None if nothing was corrected. If the filters match no article of the index, `filtered_out`
    states how many match without each of the filters; otherwise it is "". `candidates` counts the
    citations after each step of the search, by step name and in order.
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
    understood: Interpretation | None = None
    did_you_mean: str | None = None
    filtered_out: str = ""
    index_date: str = ""
    candidates: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Guess:
    """A best guess, which the evidence need not support well enough to be stated as an answer."""

    ideal: tuple[Sentence, ...]
    exact: ExactAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(SearchResult):
    """A search result with the cited answer that was written from it.

    `origin` is the source of the ideal answer: generated by the language model `written_by`, or
    extracted from the evidence. `ideal` and `exact` are shown to the user. If `verdict` is
    not_enough_evidence, both are empty and `citations` are the closest ones found. `mixed` means
    that sources disagree. `confidence`, 0 to 1, is the estimated probability that the answer is
    right; `signals` are the values that it is computed from. If the evidence is not enough,
    `closest` quotes the sentences that come closest to an answer. `guess` is the best guess if the
    question requests it: always without enough evidence, and for a stated answer if it has more
    names. `unrelated` is True if the whole index was searched and nothing in it is about the
    question; `closest` is then empty.

    `supported` justifies the exact answer, if the preset requests it. `shown` are the indices in
    `evidence`, from 0, of the passages in the language model's prompt, in their order there: not
    all passages may fit. It is None if no model was called. `check` is how sentences of the model
    that no evidence supports were treated: dropped ("drop"), marked and ignored ("mark"), or marked
    and counted like the others ("off"). `writing_calls` is the number of the writer's calls of its
    language model. `answer_id` is the id of the stored answer; "" if it was not stored.

    `caveats` are sentences that qualify the answer, for example that its sources are studies in
    mice. `sides` are the sources for and against the answer. `agreement` is how far they agree;
    None if no source takes a stance. `concept_coverage` is which concepts of the question are
    named; None if the question has no linked concepts. `exposure` is which of the sources are
    retracted or in doubt, or cite such articles; None if that was not checked.

    `parts` are the answers to the parts of a question that has several; () for any other question.
    `ideal` then joins their sentences, `exact` is None, and `caveats` name the unanswered parts.
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
    exposure: Exposure | None = None
    parts: tuple[Answer, ...] = ()
    written_by: str = ""
    unrelated: bool = False

    @property
    def choice(self) -> Guess:
        """The answer for formats that force a choice: the stated answer, or else the guess.

        These formats cannot mark a sentence, so unsupported sentences are left out unless `check`
        is "off". Raises ValueError if no answer is stated and the question requested no guess.
        """
        if self.verdict == NOT_ENOUGH and self.guess is None:
            raise ValueError(f"question {self.question.id}: no guess; ask with guess=True")
        if self.verdict == NOT_ENOUGH and self.guess is not None:
            return self.guess
        ideal = self.ideal if self.check == "off" else supported(self.ideal)
        return Guess(ideal, self.guess.exact if self.guess else self.exact)
