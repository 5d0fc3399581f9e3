"""Extractive answer, if no model writes one: the reader's highest-scored sentences, verbatim."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from cluster.answers import Question, Sentence
from cluster.models.readings import ScoredSpan
from cluster.records import NO_TITLE
from cluster.text.sentences import asks
from serve.answer.decide_verdict import weigh
from serve.answer.names.rank_names import RankedName
from serve.answer.read_evidence import ReadCitation, Side, other_side
from serve.answer.section_labels import strip_brackets, strip_label
from serve.support.attribute_sentences import MAX_PMIDS
from serve.support.compare_wording import coverage, numbers_agree, read_wording
from serve.support.find_references import holds_reference

# docs/benchmarks-quality.md shows the effect of these numbers on training questions.
SENTENCES = 2
YESNO_SENTENCES = 1
MAX_WORDS = 200
MIN_WORDS = 5
# Longer "sentences" are lists of results or lost their full stops.
LONG_WORDS = 80
# Two sentences with the same numbers that share this much of their wording are duplicates.
SAME_COVERAGE = 0.7
# Discount of a citation's score for each rank.
RANK_LOSS = 0.05
IN_CONTRAST = "In contrast: "

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
    *,
    max_sentences: int | None = None,
) -> tuple[Sentence, ...]:
    """Return the sentences that answer best, each with the PMIDs that it is quoted from.

    Sentences are verbatim except for a leading section label; near-duplicates are merged and cite
    at most three PMIDs. Fragments are used only if there is no whole sentence. The first sentence
    of a yes/no answer is the clearest on its side; if sources disagree, the clearest on the other
    side follows. Sentences with the best name of `answers` come first. The default of
    `max_sentences` depends on the type of question.
    """
    candidates = find_candidates(citations)
    if question.type == "yesno":
        return _of_side(candidates, citations, max_sentences or YESNO_SENTENCES)
    if answers:
        candidates.sort(key=lambda c: not states(c.text, answers[0].names))
    return tuple(_chosen(candidates, max_sentences or SENTENCES))


def _of_side(
    candidates: list[Candidate], citations: Sequence[ReadCitation], limit: int
) -> tuple[Sentence, ...]:
    balance = weigh(citations)
    side = balance.side
    candidates.sort(key=lambda c: -c.on(side))
    chosen = _chosen(candidates, limit)
    if not balance.is_divided:
        return tuple(chosen)
    against = quote_side(candidates, other_side(side))
    return (*chosen, *([against] if against else []))


def quote_side(candidates: Sequence[Candidate], side: Side) -> Sentence | None:
    """Return the sentence that states `side` most clearly, marked as in contrast to the answer.

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
        # A title without a full stop was given one before it was read.
        is_title = title.startswith(said.removesuffix("."))
        said = said if not is_title or title.startswith(said) else said.removesuffix(".")
        text = strip_brackets(strip_label(said)) if is_title else strip_label(said)
        if text == NO_TITLE or len(text.split()) < MIN_WORDS or asks(text):
            continue
        # An answer cites only PMIDs, because a link in an abstract may be malicious.
        if holds_reference(text):
            continue
        score = span.score * citation.reading.relevance / (1 + RANK_LOSS * citation.rank)
        yield Candidate(text, citation, span, score, _is_whole(text, is_title))


def _is_whole(text: str, is_title: bool) -> bool:
    """Return whether `text` begins and ends like a sentence; a title needs no full stop."""
    depths = accumulate((c == "(") - (c == ")") for c in _ITEM.sub("", text))
    if min(depths, default=0) < 0:
        return False
    ends = is_title or bool(_ENDS.search(text))
    return ends and bool(_BEGINS.match(text)) and len(text.split()) <= LONG_WORDS


def _chosen(candidates: Sequence[Candidate], limit: int) -> list[Sentence]:
    chosen: list[Sentence] = []
    words = 0
    for candidate in candidates:
        twin = next((n for n, s in enumerate(chosen) if _same(s.text, candidate.text)), None)
        if twin is not None:
            chosen[twin] = _cited_too(chosen[twin], candidate.citation.pmid)
            continue
        length = len(candidate.text.split())
        if len(chosen) < limit and words + length <= MAX_WORDS:
            chosen.append(Sentence(candidate.text, (candidate.citation.pmid,), 1.0))
            words += length
    return chosen


def _same(one: str, other: str) -> bool:
    here, there = read_wording(one), read_wording(other)
    return one == other or (
        numbers_agree(there, here)
        and here.negations == there.negations
        and coverage(here, there) >= SAME_COVERAGE
        and coverage(there, here) >= SAME_COVERAGE
    )


def _cited_too(sentence: Sentence, pmid: int) -> Sentence:
    if pmid in sentence.pmids or len(sentence.pmids) == MAX_PMIDS:
        return sentence
    return replace(sentence, pmids=(*sentence.pmids, pmid))
