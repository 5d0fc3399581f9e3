"""Exact answers from the evidence alone, by question type, where no model gives them."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.answers import ExactAnswer, Question
from serve.answer.decide_yesno import weigh
from serve.answer.names.find_values import asked_value, is_value, needs_a_value, rank_values
from serve.answer.names.group_names import LIMITS, Recogniser, definitions
from serve.answer.names.rank_names import RankedName, rank_names
from serve.answer.names.spell_out import spelt_out
from serve.answer.read_evidence import ReadPassage

# An item of a list scores at least this share of the best one.
LIST_SHARE = 0.35
# A person is shown no names where the best one scores less than this, times the share of the
# question's words that a passage holds which names it. Of 253 train questions, on which it was
# chosen, 10 lie below, of which one had a right first name.
SURE = 0.08
# And a person is shown those answers to a factoid question alone that come this close to the best.
CLOSE = 0.6


def extract_exact(
    question: Question, passages: Sequence[ReadPassage], answers: Sequence[RankedName]
) -> ExactAnswer:
    """The exact answer in BioASQ's form for the question's type; None for summary and unknown.

    `answers` are those of `rank_answers`. A yes/no question that the evidence is silent on gets
    "no", the better guess of the two. A factoid question gets the names that come close to the best
    one, or the first five where the question asks for guesses, as BioASQ's measures reward.
    """
    if question.type == "yesno":
        return weigh(passages).side
    if question.type not in LIMITS:
        return None
    unsure = answers and answers[0].score * answers[0].share < SURE
    if unsure and not question.guess and not is_value(answers[0].names[0], question.body):
        return []
    share = LIST_SHARE if question.type == "list" else 0.0 if question.guess else CLOSE
    floor = share * answers[0].score if answers else 0.0
    names = [list(name.names) for name in answers if name.score >= floor]
    return names[: LIMITS[question.type]]


def rank_answers(
    question: Question, passages: Sequence[ReadPassage], recognise: Recogniser
) -> list[RankedName]:
    """Values of the kind that the question asks for, else names, best first; [] for other types.

    What a short form that the question asks about stands for goes before all else.
    """
    if question.type not in LIMITS:
        return []
    body = question.body
    value = asked_value(body)
    found = rank_values(value, passages, body) if value else []
    if value and question.guess and not found:
        found = rank_values(value, passages)
    if found or needs_a_value(body):
        return [RankedName((text,), score) for text, score in found]
    ranked = rank_names(body, passages, recognise)
    long = spelt_out(body, definitions([passage.item for passage in passages]))
    best = ranked[0].score if ranked else 1.0
    return [RankedName(tuple(long), 1.0 + best), *ranked] if long else ranked
