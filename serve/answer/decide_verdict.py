"""Whether the evidence answers the question, how sure that is, and what each passage does to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cluster.answers import NOT_ENOUGH, ExactAnswer, Question, Sentence, Verdict
from serve.answer.decide_yesno import CLEAR, Balance, weigh
from serve.answer.guard_safety import find_warning, is_withheld
from serve.answer.names.find_values import needs_a_value
from serve.answer.names.name_kinds import asked_kind
from serve.answer.read_evidence import ReadPassage, Side
from serve.answer.tell_verdict import shortened
from serve.llm.reply_forms import Decision as ModelDecision
from serve.question.contrary_forms import affirmed, opposed
from serve.support.attribute_sentences import Stance

# Evidence answers from these probabilities on. Of 127 questions kept from the reader's training,
# all answerable, 5% lie below the first. Of 382 answers to yes/no train questions 19 lie below the
# second by how clearly one side is said and its share of all that is: 6 of the 17 wrong ones.
RELEVANT = 0.95
SAID = 0.5
# A model's yes or no is not stated against evidence that is this clear on the other side.
OVERRULED = 0.85
MAX_PMIDS = 3
_WHICH = re.compile(r"\b(?:which|who)\b", re.IGNORECASE)
DENSE = "dense"


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict, the confidence (0 to 1) in the answer, and what stances are towards.

    `stance_on` is "yes", "no" or the answer's first sentence; "" where there is no answer.
    `warning` quotes a source that warns, where a question for safety or leave is not answered.
    """

    verdict: Verdict
    confidence: float
    stance_on: str
    warning: str = ""


def decide_verdict(
    question: Question,
    passages: Sequence[ReadPassage],
    ideal: Sequence[Sentence],
    exact: ExactAnswer,
    decision: ModelDecision | None = None,
    *,
    generated: bool = False,
    agrees: bool = True,
    opposed_by: Sentence | None = None,
    min_cosine: float = 0.0,
    deciding_cosine: float = 0.0,
) -> Decision:
    """The verdict on an answer.

    `decision` is the language model's own where it was asked; `agrees` is False where no sentence
    of the evidence takes the side that was decided, or is on what else is asked,
    `opposed_by` one that takes the other. There is not enough evidence for an answer without a
    sentence, one that the model says is not stated, one without the quantity that was asked for or,
    where no model `generated` it, the name, one from evidence that is far from the question (no
    cosine of `min_cosine`, or for a yes none of `deciding_cosine` of its first source), irrelevant
    or, where it decides, silent or clear by less than half, of a question of safety a yes over a
    warning or a no over a denial of harm, and a yes above the opposite of a word of the question.
    """
    relevant = max((passage.reading.relevance for passage in passages), default=0.0)
    balance = weigh(passages)
    # How far a passage takes a side counts its relevance already.
    sided = question.type == "yesno" and decision is None
    answers = _takes_a_side(balance) if sided else relevant >= RELEVANT
    lacks = not exact and needs_a_name(question, generated)
    stated = ideal and agrees and decision != "not stated" and not lacks
    if not stated or not answers or _nearest(passages) < min_cosine:
        return undecided(question, passages)
    if question.type != "yesno":
        return Decision("answered", relevant, ideal[0].text)
    on = exact if isinstance(exact, str) else balance.side
    withheld = is_withheld(question.body, "yes" if on == "yes" else "no", passages)
    alone = decision is None and on == "yes"
    if withheld or (alone and _is_doubtful(question, ideal[0], passages, deciding_cosine)):
        return undecided(question, passages)
    if decision is None:
        verdict: Verdict = "mixed" if balance.divided else "answered"
        return Decision(verdict, balance.share * balance.said, on)
    # A small model sees one side alone.
    differs = on != balance.side
    overruled = differs and (opposed_by or balance.share * balance.said >= OVERRULED)
    if decision == "mixed" or balance.divided or overruled:
        return Decision("mixed", 0.5, on)
    agreement = 1 - balance.share if differs else balance.share
    return Decision("answered", (1 + agreement * balance.said) / 2, on)


def _takes_a_side(balance: Balance) -> bool:
    """Whether the evidence says yes or no clearly, or both."""
    return balance.said >= SAID and (balance.divided or balance.share * balance.said >= SAID)


def undecided(question: Question, passages: Sequence[ReadPassage]) -> Decision:
    """Not enough evidence; where the question asks for safety or leave, with a warning if any."""
    warning = find_warning(question.body, passages) if question.type == "yesno" else None
    if warning is None:
        return Decision(NOT_ENOUGH, 0.0, "")
    text, pmid = warning
    return Decision(NOT_ENOUGH, 0.0, "", f'PMID {pmid} warns: "{shortened(text)}"')


def _is_doubtful(
    question: Question, first: Sentence, passages: Sequence[ReadPassage], cosine: float
) -> bool:
    """Whether the sentence is of sources that are far from the question, or says the opposite of
    a word of it, where it denies nothing."""
    sources = [passage for passage in passages if passage.item.passage.pmid in first.pmids]
    if _nearest(sources) < cosine:
        return True
    return not affirmed(question.body) and bool(opposed(question.body, first.text))


def needs_a_name(question: Question, generated: bool) -> bool:
    """Whether an answer without a figure or a name is none: the question says what it asks for.

    A model's sentence may name it in words that are no name by themselves.
    """
    body = question.body
    if question.type == "factoid" and needs_a_value(body):
        return True
    if generated:
        return False
    asked = question.type == "factoid" and (_WHICH.search(body) or asked_kind(body))
    return question.type == "list" or bool(asked)


def _nearest(passages: Sequence[ReadPassage]) -> float:
    """The best cosine of a passage with the question; 1 where the search made no vectors."""
    cosines = [passage.item.scores.get(DENSE) for passage in passages]
    return max((cosine for cosine in cosines if cosine is not None), default=1.0)


def yesno_stances(passages: Sequence[ReadPassage], side: Side) -> dict[str, Stance]:
    """What each passage does to the answer `side`, by the passage's id."""
    return {passage.item.passage.id: _stance(passage, side) for passage in passages}


def _stance(passage: ReadPassage, side: Side) -> Stance:
    for_, against = passage.weight(side), passage.weight("no" if side == "yes" else "yes")
    if max(for_, against) < CLEAR:
        return "neutral"
    return "support" if for_ > against else "contradict"


def note_opposition(
    ideal: Sequence[Sentence], passages: Sequence[ReadPassage], stances: Mapping[str, Stance]
) -> tuple[Sentence, ...]:
    """The sentences of a yes/no answer, the first with the PMIDs that contradict the answer."""
    if not ideal:
        return ()
    cited = {pmid for sentence in ideal for pmid in sentence.pmids}
    against = dict.fromkeys(
        passage.item.passage.pmid
        for passage in passages
        if stances[passage.item.passage.id] == "contradict"
    )
    pmids = tuple(pmid for pmid in against if pmid not in cited)[:MAX_PMIDS]
    return (replace(ideal[0], contradicted=pmids), *ideal[1:])
