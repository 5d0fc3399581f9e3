"""Extract an answer without a language model: the reader's best sentences and names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from cluster.answers import ExactAnswer, Question, Sentence
from cluster.models.readings import ScoredSpan
from cluster.records import NO_TITLE
from cluster.text.sentences import asks
from serve.answer.decide_verdict import weigh
from serve.answer.names.group_names import LIMITS
from serve.answer.names.rank_names import RankedName
from serve.answer.read_evidence import ReadCitation, Side, other_side
from serve.answer.section_labels import strip_brackets, strip_label
from serve.support.attribute_sentences import MAX_PMIDS
from serve.support.find_references import holds_reference

# docs/benchmarks-quality.md shows the effect of these numbers on training questions.
SENTENCES = 2
YESNO_SENTENCES = 1
MAX_WORDS = 200
MIN_WORDS = 5
# Longer "sentences" are lists of results, or several sentences without full stops.
LONG_WORDS = 80
# A citation's score is divided by 1 plus this number times its rank.
QUOTE_RANK_LOSS = 0.05
IN_CONTRAST = "In contrast: "
# A list keeps the items that score at least this share of the best one.
LIST_SHARE = 0.35
# A factoid question keeps the names that score at least this share of the best one.
CLOSE = 0.6

_BEGINS = re.compile(r"^[\"'(\[]?[A-Z0-9\u0391-\u03a9]|^[a-z]{0,3}[A-Z0-9]")
# "1)" and "b)" before an item of a list.
_ITEM = re.compile(r"(?<![^\s(])\w{1,3}\)")
_ENDS = re.compile(r"[.!][\"')\]]*$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence without its section label; `score` is how well it answers."""

    text: str
    citation: ReadCitation
    span: ScoredSpan
    score: float
    is_whole: bool

    def on(self, side: Side) -> float:
        """Return how well the sentence states `side` of a yes/no question."""
        lean = self.span.lean if side == "yes" else -self.span.lean
        return self.score * self.citation.weight(side) / (1 + math.exp(-lean))


def extract_ideal(
    question: Question,
    citations: Sequence[ReadCitation],
    answers: Sequence[RankedName] = (),
    max_sentences: int | None = None,
) -> tuple[Sentence, ...]:
    """Return the sentences that answer best, each with the PMIDs that it is quoted from.

    Sentences are verbatim except for a leading section label; equal ones are merged and cite at
    most three PMIDs. Fragments are used only if there is no whole sentence. The first sentence
    of a yes/no answer is the clearest on its side. Sentences with the best name of `answers` come
    first. The default of `max_sentences` depends on the type of question.
    """
    candidates = find_candidates(citations)
    if question.type == "yesno":
        side = weigh(citations).side
        candidates.sort(key=lambda c: -c.on(side))
    elif answers:
        candidates.sort(key=lambda c: not states(c.text, answers[0].names))
    usual = YESNO_SENTENCES if question.type == "yesno" else SENTENCES
    return tuple(_chosen(candidates, max_sentences or usual))


def quote_side(candidates: Sequence[Candidate], side: Side) -> Sentence | None:
    """Return the sentence that states `side` most clearly, after "In contrast: ".

    Returns None if no sentence is from a citation that takes that side.
    """
    other = other_side(side)
    on_side = [c for c in candidates if c.citation.weight(side) > c.citation.weight(other)]
    best = max(on_side, key=lambda c: c.on(side), default=None)
    if best is None:
        return None
    return Sentence(IN_CONTRAST + best.text, (best.citation.pmid,), 1.0)


def states(text: str, names: Sequence[str]) -> bool:
    """Return whether the text contains one of the names, ignoring case."""
    said = text.casefold()
    return any(name.casefold() in said for name in names)


def find_candidates(citations: Sequence[ReadCitation]) -> list[Candidate]:
    """Return the sentences that may be used in an answer, best first."""
    found = [candidate for citation in citations for candidate in _sentences(citation)]
    whole_ones = [c for c in found if c.is_whole]
    return sorted(whole_ones or found, key=lambda c: -c.score)


def _sentences(citation: ReadCitation) -> Iterator[Candidate]:
    for span in citation.reading.sentences:
        said = citation.sentence(span)
        title = citation.item_at(span.begin).title
        # `read_evidence.join_text` adds a full stop to a title without one.
        is_title = title.startswith(said.removesuffix("."))
        said = said if not is_title or title.startswith(said) else said.removesuffix(".")
        text = strip_brackets(strip_label(said)) if is_title else strip_label(said)
        if text == NO_TITLE or len(text.split()) < MIN_WORDS or asks(text):
            continue
        # An answer cites only PMIDs, because a link in an abstract may be malicious.
        if holds_reference(text):
            continue
        score = span.score * citation.reading.relevance / (1 + QUOTE_RANK_LOSS * citation.rank)
        yield Candidate(text, citation, span, score, _is_whole(text, is_title))


def _is_whole(text: str, is_title: bool) -> bool:
    """Return whether `text` looks like a complete sentence; a title needs no full stop."""
    depths = accumulate((c == "(") - (c == ")") for c in _ITEM.sub("", text))
    if min(depths, default=0) < 0:
        return False
    ends = is_title or bool(_ENDS.search(text))
    return ends and bool(_BEGINS.match(text)) and len(text.split()) <= LONG_WORDS


def _chosen(candidates: Sequence[Candidate], limit: int) -> Iterable[Sentence]:
    """Return the best `limit` sentences that fit into MAX_WORDS words; equal ones are merged."""
    chosen: dict[str, Sentence] = {}
    words = 0
    for candidate in candidates:
        pmid, length = candidate.citation.pmid, len(candidate.text.split())
        key = candidate.text.casefold().rstrip(".")
        if twin := chosen.get(key):
            if pmid not in twin.pmids:
                chosen[key] = replace(twin, pmids=(*twin.pmids, pmid)[:MAX_PMIDS])
        elif len(chosen) < limit and words + length <= MAX_WORDS:
            chosen[key] = Sentence(candidate.text, (pmid,), 1.0)
            words += length
    return chosen.values()


def extract_exact(
    question: Question, citations: Sequence[ReadCitation], answers: Sequence[RankedName]
) -> ExactAnswer:
    """Return the exact answer in BioASQ's form; None for summary and unknown.

    `answers` is the result of `rank_names`. A yes/no question without evidence gets "no", the
    better guess of the two. A factoid question gets the names that score close to the best one.
    """
    if question.type == "yesno":
        return weigh(citations).side
    if question.type not in LIMITS:
        return None
    share = LIST_SHARE if question.type == "list" else CLOSE
    floor = share * answers[0].score if answers else 0.0
    names = [list(name.names) for name in answers if name.score >= floor]
    return names[: LIMITS[question.type]]
