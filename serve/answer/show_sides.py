"""Stances of the evidence towards a written answer, and quotations of the other side."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.answers import ExactAnswer, Sentence
from serve.answer.ask_model import Briefing
from serve.answer.decide_verdict import note_opposition, weigh, yesno_stances
from serve.answer.extract_answer import find_candidates, quote_side
from serve.answer.read_evidence import Side, other_side
from serve.answer.write_ideal import within_words
from serve.support.attribute_sentences import Stance, SupportScorer
from serve.support.weigh_evidence import Thresholds, contradicting_sentence, note_contradictions


def side_of(exact: ExactAnswer) -> Side | None:
    """Return the side of a yes/no answer; None for an exact answer of any other type."""
    return "yes" if exact == "yes" else "no" if exact == "no" else None


def note_sides(
    briefing: Briefing, ideal: tuple[Sentence, ...], scorer: SupportScorer, exact: ExactAnswer
) -> tuple[tuple[Sentence, ...], Mapping[str, Stance]]:
    """Return the sentences with the PMIDs that contradict them, and the stances of passages.

    For a yes/no question, stances refer to the exact answer, otherwise to the sentences. If the
    preset weighs both sides, a contradicting sentence is added.
    """
    limits = briefing.limits
    side = side_of(exact)
    if not briefing.style.weigh and side:
        stances = yesno_stances(briefing.citations, side)
        return note_opposition(ideal, briefing.citations, stances), stances
    thresholds = Thresholds(limits.support_threshold, limits.contradiction_threshold)
    evidence = briefing.evidence
    ideal, noted = note_contradictions(ideal, evidence, scorer, thresholds)
    if not briefing.style.weigh:
        return ideal, noted
    against = contradicting_sentence(ideal, evidence, scorer, thresholds)
    return (with_room(briefing, ideal, against) if against else ideal), noted


def against_model(briefing: Briefing, exact: ExactAnswer) -> Sentence | None:
    """Return a sentence against a model's yes or no if sources disagree, else None."""
    side = side_of(exact)
    if side is None or not weigh(briefing.citations).is_divided:
        return None
    candidates = find_candidates(briefing.citations)
    return quote_side(candidates, other_side(side))


def with_room(
    briefing: Briefing, ideal: tuple[Sentence, ...], against: Sentence
) -> tuple[Sentence, ...]:
    """Return the answer with the opposing sentence last, within the preset's word limit."""
    room = briefing.style.max_words - len(against.text.split())
    return (*within_words(ideal, room), against)
