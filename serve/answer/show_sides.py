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
from serve.support.weigh_evidence import note_contradictions


def side_of(exact: ExactAnswer) -> Side | None:
    """Return the side of a yes/no answer; None for an exact answer of any other type."""
    return "yes" if exact == "yes" else "no" if exact == "no" else None


def note_sides(
    briefing: Briefing, ideal: tuple[Sentence, ...], scorer: SupportScorer, exact: ExactAnswer
) -> tuple[tuple[Sentence, ...], Mapping[str, Stance]]:
    """Return the sentences with the PMIDs that contradict them, and the stances of passages.

    For a yes/no question, stances refer to the exact answer, otherwise to the sentences.
    """
    side = side_of(exact)
    if side:
        stances = yesno_stances(briefing.citations, side)
        return note_opposition(ideal, briefing.citations, stances), stances
    return note_contradictions(ideal, briefing.evidence, scorer, briefing.limits.thresholds)


def quote_opposition(
    briefing: Briefing, ideal: tuple[Sentence, ...], exact: ExactAnswer
) -> tuple[Sentence, ...]:
    """Return the answer; if sources disagree, the clearest sentence of the other side follows.

    The answer stays within the preset's word limit. If the quotation would leave no sentence of
    the answer itself, it is left out.
    """
    side = side_of(exact)
    if side is None or not weigh(briefing.citations).is_divided:
        return ideal
    against = quote_side(find_candidates(briefing.citations), other_side(side))
    if against is None:
        return ideal
    room = briefing.style.max_words - len(against.text.split())
    kept = within_words(ideal, room)
    return (*kept, against) if kept else ideal
