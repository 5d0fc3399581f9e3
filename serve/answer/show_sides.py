"""What speaks for a written answer and what against it: stances, and the other side quoted."""

from __future__ import annotations

from collections.abc import Mapping

from cluster.answers import ExactAnswer, Sentence
from serve.answer.ask_model import Briefing
from serve.answer.decide_verdict import note_opposition, yesno_stances
from serve.answer.decide_yesno import weigh
from serve.answer.extract_answer import quote_against
from serve.answer.read_evidence import PassageReader, Side
from serve.answer.write_ideal import within_words
from serve.support.attribute_sentences import Stance, SupportScorer
from serve.support.weigh_evidence import Thresholds, contradicting_sentence, note_contradictions


def side_of(exact: ExactAnswer) -> Side | None:
    """The side of a yes/no answer; None for an exact answer of any other type."""
    return "yes" if exact == "yes" else "no" if exact == "no" else None


def note_sides(
    briefing: Briefing, ideal: tuple[Sentence, ...], scorer: SupportScorer, exact: ExactAnswer
) -> tuple[tuple[Sentence, ...], Mapping[str, Stance]]:
    """The sentences with what contradicts them; where the preset weighs, that is said too.

    Stances on a yes/no question are towards its exact answer, others towards the sentences.
    """
    limits = briefing.limits
    side = side_of(exact)
    if not briefing.style.weigh and side:
        sided = yesno_stances(briefing.passages, side)
        return note_opposition(ideal, briefing.passages, sided), sided
    thresholds = Thresholds(limits.support_threshold, limits.contradiction_threshold)
    evidence = briefing.evidence
    ideal, stances = note_contradictions(ideal, evidence, scorer, thresholds)
    if not briefing.style.weigh:
        return ideal, stances
    against = contradicting_sentence(ideal, evidence, scorer, thresholds)
    if against is None:
        return ideal, stances
    return with_room(briefing, ideal, against), stances


def against_model(briefing: Briefing, exact: ExactAnswer, reader: PassageReader) -> Sentence | None:
    """A sentence against a model's yes or no, where the evidence is divided or leans away."""
    side, balance = side_of(exact), weigh(briefing.passages)
    if side is None or (side == balance.side and not balance.divided):
        return None
    return quote_against(briefing.question, briefing.passages, side, reader)


def with_room(
    briefing: Briefing, ideal: tuple[Sentence, ...], against: Sentence
) -> tuple[Sentence, ...]:
    """The answer and last the sentence against it, in the words that the preset allows."""
    room = briefing.style.max_words - len(against.text.split())
    return (*within_words(ideal, room), against)
