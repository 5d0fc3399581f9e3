"""Exact answers from the evidence alone, by type of question, if no model gives them."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.answers import ExactAnswer, Question
from serve.answer.decide_verdict import weigh
from serve.answer.names.group_names import LIMITS, Recogniser
from serve.answer.names.rank_names import RankedName, rank_names
from serve.answer.read_evidence import ReadCitation

# A list keeps the items that score at least this share of the best one.
LIST_SHARE = 0.35
# A factoid question keeps the names that score at least this share of the best one.
CLOSE = 0.6


def extract_exact(
    question: Question, citations: Sequence[ReadCitation], answers: Sequence[RankedName]
) -> ExactAnswer:
    """Return the exact answer in BioASQ's form; None for summary and unknown.

    `answers` is the result of `rank_answers`. A yes/no question without evidence gets "no", the
    better guess of the two. A factoid question gets the names that score close to the best one, or
    the first five if it asks for guesses, which BioASQ's measures reward.
    """
    if question.type == "yesno":
        return weigh(citations).side
    if question.type not in LIMITS:
        return None
    share = LIST_SHARE if question.type == "list" else 0.0 if question.guess else CLOSE
    floor = share * answers[0].score if answers else 0.0
    names = [list(name.names) for name in answers if name.score >= floor]
    return names[: LIMITS[question.type]]


def rank_answers(
    question: Question, citations: Sequence[ReadCitation], recognise: Recogniser
) -> list[RankedName]:
    """Return candidate names for a factoid or list question, best first; [] for other types."""
    if question.type not in LIMITS:
        return []
    return rank_names(question.body, citations, recognise)
