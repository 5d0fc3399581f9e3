"""Decide an answer's verdict from the evidence, a calibrated probability and the error budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cluster.answers import NOT_ENOUGH, ExactAnswer, Question, Sentence, Verdict
from serve.answer.calibration import OTHERS, Calibration
from serve.answer.names.rank_names import RankedName
from serve.answer.read_evidence import ReadCitation, Side, other_side
from serve.llm.reply_forms import ModelDecision
from serve.support.attribute_sentences import MAX_PMIDS, Stance

# Lowest weight at which a citation takes a side.
CLEAR = 0.5
# Sources disagree if both sides have a clear citation and no side reaches this share.
DISAGREE_SHARE = 0.7
# Probability of the other side from which the reader vetoes a language model's yes or no.
VETO = 0.8
# A citation's weight is divided by 1 plus this number times its rank.
SIDE_RANK_LOSS = 0.15
# Keeps logarithms finite if no citation takes a side.
SMALL = 0.01
DENSE = "dense"
SIDES: tuple[Side, ...] = ("yes", "no")


@dataclass(frozen=True, slots=True)
class Balance:
    """Sum and maximum of the citations' weights for yes and for no.

    Sides are compared with the sum for no multiplied by `no_weight`, the calibration's.
    """

    yes: float = 0.0
    no: float = 0.0
    best_yes: float = 0.0
    best_no: float = 0.0
    no_weight: float = 1.0

    @property
    def lean(self) -> float:
        """Logarithm of the ratio of the sums; positive if yes is stronger."""
        return math.log((self.yes + SMALL) / (self.no_weight * self.no + SMALL))

    @property
    def side(self) -> Side:
        """The stronger side."""
        return "yes" if self.lean > 0 else "no"

    @property
    def share(self) -> float:
        """Share of the stronger side in the sum of both, 0.5 to 1."""
        return 1 / (1 + math.exp(-abs(self.lean)))

    @property
    def said(self) -> float:
        """Weight of the clearest citation on the stronger side, 0 to 1."""
        return self.best_yes if self.side == "yes" else self.best_no

    @property
    def is_divided(self) -> bool:
        """Whether both sides have a clear citation and neither prevails by the sums alone."""
        ratio = (max(self.yes, self.no) + SMALL) / (self.yes + self.no + 2 * SMALL)
        return min(self.best_yes, self.best_no) >= CLEAR and ratio < DISAGREE_SHARE


def weigh(citations: Sequence[ReadCitation]) -> Balance:
    """Return the balance of `citations`; all zeros if there are none."""
    yes, no = (
        sum(c.weight(side) / (1 + SIDE_RANK_LOSS * c.rank) for c in citations) for side in SIDES
    )
    best_yes, best_no = (max((c.weight(side) for c in citations), default=0.0) for side in SIDES)
    no_weight = citations[0].no_weight if citations else 1.0
    return Balance(yes, no, best_yes, best_no, no_weight)


def features_of(
    question: Question, citations: Sequence[ReadCitation], answers: Sequence[RankedName]
) -> dict[str, float]:
    """Return the features that give the probability of a right answer, by name."""
    balance = weigh(citations)
    salience = max(
        (s.score * c.reading.relevance for c in citations for s in c.reading.sentences),
        default=0.0,
    )
    scores = [answer.score for answer in answers[:2]] + [0.0, 0.0]
    return {
        "share": _logit(balance.share),
        "said": _logit(balance.said),
        "lean": balance.lean,
        "relevance": _logit(best_relevance(citations)),
        "salience": _logit(salience),
        "cosine": nearest_cosine(citations),
        "name": math.log(SMALL + scores[0]),
        "margin": math.log((SMALL + scores[0]) / (SMALL + scores[1])),
        "mean_name": sum(answer.share for answer in answers[:1]),
    }


def best_relevance(citations: Sequence[ReadCitation]) -> float:
    """Return the highest relevance of a citation; 0 without citations."""
    return max((c.reading.relevance for c in citations), default=0.0)


def nearest_cosine(citations: Sequence[ReadCitation]) -> float:
    """Return the highest cosine similarity between a passage and the question.

    It is 0 if the encoder failed, and 1 for evidence that was given instead of searched for.
    """
    found = [item.scores.get(DENSE) for citation in citations for item in citation.items]
    return max((cosine for cosine in found if cosine is not None), default=1.0)


def _logit(share: float) -> float:
    share = min(1 - SMALL, max(SMALL, share))
    return math.log(share / (1 - share))


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict, the probability that the answer is right, and what stances refer to.

    `stance_on` is "yes", "no" or the answer's first sentence; "" if nothing is stated. `signals`
    are the features from which the probability was computed. `unrelated` is True if nothing is
    stated and no citation is about the question.
    """

    verdict: Verdict
    confidence: float
    stance_on: str
    signals: Mapping[str, float] = field(default_factory=dict)
    unrelated: bool = False

    @property
    def has_closest(self) -> bool:
        """Whether nothing is stated although a citation is about the question."""
        return self.verdict == NOT_ENOUGH and not self.unrelated


@dataclass(frozen=True, slots=True)
class Written:
    """Parts of a written answer that the verdict depends on.

    `decision` is the language model's decision, if it was asked. `by_model` is true if it wrote
    the ideal answer and, where the question asks for names, chose them.
    """

    ideal: Sequence[Sentence]
    exact: ExactAnswer
    decision: ModelDecision | None = None
    by_model: bool = False


def decide_verdict(
    question: Question,
    citations: Sequence[ReadCitation],
    answers: Sequence[RankedName],
    written: Written,
    calibration: Calibration,
    max_wrong: float,
) -> Decision:
    """Return the verdict on an answer.

    An answer is stated if the probability that it is right reaches the threshold for `max_wrong`.
    A decision of the language model replaces that of the reader model. The reader can turn the
    language model's yes or no into "mixed", but never into the opposite.
    """
    kind = question.type if question.type in calibration.types else OTHERS
    if written.by_model and question.type != "yesno":
        kind = OTHERS
    signals = features_of(question, citations, answers)
    confidence = calibration.probability(kind, signals)
    is_sure = confidence >= calibration.threshold(kind, max_wrong)
    decided = _decide(question, weigh(citations), written, confidence, is_sure)
    unrelated = decided.verdict == NOT_ENOUGH and best_relevance(citations) < calibration.related
    return replace(decided, signals=signals, unrelated=unrelated)


def _decide(
    question: Question, balance: Balance, written: Written, confidence: float, is_sure: bool
) -> Decision:
    if not written.ideal or written.decision == "not stated" or _lacks_names(question, written):
        return Decision(NOT_ENOUGH, confidence, "")
    if question.type != "yesno":
        return _stated_if(is_sure, confidence, written.ideal[0].text)
    on = written.exact if isinstance(written.exact, str) else balance.side
    if written.decision is not None:
        return _of_model(written.decision, on, balance, confidence)
    if balance.is_divided:
        return Decision("mixed", confidence, on)
    return _stated_if(is_sure, confidence, on)


def _stated_if(is_sure: bool, confidence: float, on: str) -> Decision:
    return Decision("answered" if is_sure else NOT_ENOUGH, confidence, on if is_sure else "")


def _of_model(decision: ModelDecision, on: str, balance: Balance, confidence: float) -> Decision:
    """Return the verdict on a language model's yes or no, which ignores the error budget."""
    if decision == "mixed" or balance.is_divided:
        return Decision("mixed", 0.5, on)
    if on == balance.side:
        return Decision("answered", (1 + confidence) / 2, on)
    if confidence >= VETO:
        return Decision("mixed", 0.5, on)
    return Decision("answered", 1 - confidence / 2, on)


def _lacks_names(question: Question, written: Written) -> bool:
    return question.type in ("factoid", "list") and not written.exact and not written.by_model


def yesno_stances(citations: Sequence[ReadCitation], side: Side) -> dict[str, Stance]:
    """Return the stance of each passage towards the answer `side`, by the passage's id.

    Only the clearest passage of a citation takes a stance; its others are neutral.
    """
    stances: dict[str, Stance] = {}
    other = other_side(side)
    for citation in citations:
        for item in citation.items:
            stances[item.passage.id] = "neutral"
        for_, against = citation.weight(side), citation.weight(other)
        if max(for_, against) < CLEAR:
            continue
        taken = side if for_ > against else other
        span = citation.clearest(taken)
        item = citation.item_at(span.begin) if span else citation.items[0]
        stances[item.passage.id] = "support" if taken == side else "contradict"
    return stances


def note_opposition(
    ideal: Sequence[Sentence], citations: Sequence[ReadCitation], stances: Mapping[str, Stance]
) -> tuple[Sentence, ...]:
    """Return `ideal`, with the PMIDs that contradict the answer added to its first sentence."""
    if not ideal:
        return ()
    cited = {pmid for sentence in ideal for pmid in sentence.pmids}
    against = dict.fromkeys(
        citation.pmid
        for citation in citations
        if any(stances[item.passage.id] == "contradict" for item in citation.items)
    )
    pmids = tuple(pmid for pmid in against if pmid not in cited)[:MAX_PMIDS]
    return (replace(ideal[0], contradicted=pmids), *ideal[1:])
