"""Whether the evidence answers the question, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster.records import NOT_ENOUGH, Evidence, ExactAnswer, Question, Sentence, Verdict
from serve.attribute_sentences import Stance


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict, the confidence (0 to 1) in the answer, and what stances are towards.

    `stance_on` is "yes", "no" or the answer's first sentence; "" where there is no answer.
    """

    verdict: Verdict
    confidence: float
    stance_on: str


def decide_verdict(
    question: Question,
    evidence: Sequence[Evidence],
    ideal: Sequence[Sentence],
    exact: ExactAnswer,
    stances: Mapping[str, Stance],
) -> Decision:
    """The verdict on an answer; `stances` are those of the passages of `evidence`, by id.

    An answer without a sentence has not enough evidence; its confidence is 0. Any other is
    answered, with the support of its first sentence as the confidence.
    """
    if not ideal:
        return Decision(NOT_ENOUGH, 0.0, "")
    on = exact if isinstance(exact, str) else ideal[0].text
    return Decision("answered", ideal[0].support, on)
