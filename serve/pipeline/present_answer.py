"""Fields of an answer from what was found and written, as pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cluster.answers import NOT_ENOUGH, Evidence, Guess, Question, SearchResult
from serve.answer.read_evidence import MAX_READ
from serve.answer.write_answer import WrittenAnswer
from serve.contracts.request import Request


def with_stances(evidence: Sequence[Evidence], written: WrittenAnswer) -> tuple[Evidence, ...]:
    """Return the evidence with stances; unchanged if no answer is stated."""
    if written.verdict == NOT_ENOUGH:
        return tuple(evidence)
    return tuple(
        replace(item, stance=stance, stance_on=written.stance_on)
        if (stance := written.stances.get(item.passage.id))
        else item
        for item in evidence
    )


def positions_of(
    shown: Sequence[str] | None, evidence: Sequence[Evidence]
) -> tuple[int, ...] | None:
    """Return the positions of passage ids in the evidence, from 0; None if `shown` is None."""
    if shown is None:
        return None
    places = {item.passage.id: position for position, item in enumerate(evidence)}
    return tuple(places[id_] for id_ in shown if id_ in places)


def stated_fields(question: Question, written: WrittenAnswer) -> dict[str, Any]:
    """Return the fields of an Answer that hold the written text.

    If the verdict is not_enough_evidence, nothing is stated. If the question asks for a best
    guess, it is returned as `guess` where it differs from the stated answer.
    """
    verdict = {
        "verdict": written.verdict,
        "confidence": written.confidence,
        "signals": written.signals,
    }
    guess = Guess(written.ideal, written.guesses) if question.guess else None
    if written.verdict != NOT_ENOUGH:
        stated = {"ideal": written.ideal, "exact": written.exact, "origin": written.origin}
        guess = None if written.guesses == written.exact else guess
        return {**verdict, **stated, "supported": written.supported, "guess": guess}
    nothing = {"ideal": (), "exact": None, "origin": "none"}
    return {**verdict, **nothing, "guess": guess, "closest": written.closest}


def used_whole_index(found: SearchResult, request: Request, degraded: Sequence[str]) -> bool:
    """Return False if a related article may not have been found, or was not used as retracted."""
    unused = any(citation.retracted for citation in found.citations)
    return not (request.filters or request.question.given or degraded or unused)


def with_articles_read(found: SearchResult) -> SearchResult:
    """Return `found` with the number of articles that the reader read among its `candidates`."""
    articles = len({item.passage.pmid for item in found.evidence})
    return replace(found, candidates={**found.candidates, "read": min(MAX_READ, articles)})
