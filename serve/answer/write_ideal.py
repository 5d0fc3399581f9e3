"""Write the ideal answer with the model, and attribute each sentence to evidence or drop it."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from cluster.answers import Check, Evidence, Sentence, supported
from cluster.errors import LLMError
from cluster.text.name_shapes import names_by_shape
from serve.answer.ask_model import ABSENT, FAILED, UNUSABLE, Briefing
from serve.answer.clean_answer import clean_answer
from serve.answer.decide_verdict import weigh
from serve.answer.names.cluster_names import Recognise
from serve.answer.names.group_names import LIMITS
from serve.answer.names.settle_exact import opening_verdict
from serve.answer.read_evidence import Side, other_side
from serve.llm.prompts import number_passages, shown_passages
from serve.llm.reply_forms import TEXT, ModelDecision, read_weights, says_nothing
from serve.support.attribute_sentences import MAX_PMIDS, SupportScorer, attribute
from serve.support.check_names import borrowed_names, invented_names
from serve.support.compare_wording import numbers_agree, read_wording
from serve.support.find_references import holds_reference
from serve.support.weigh_evidence import split_by_stance

log = logging.getLogger(__name__)

# Log odds above which a "yes" is accepted, because small models are biased towards yes
# (docs/benchmarks-quality.md).
YES_MARGIN = 2.0


@dataclass(frozen=True, slots=True)
class Draft:
    """Ideal answer by the language model; `fault` says why there is none, or is "".

    `inferred` is a summary of the model's reasoning. `decision` is the yes or no that the model
    gave before it wrote, or "not stated" if it says that the evidence does not answer, which is
    not a fault. `shown` are the passages in its prompt, unless they are the first of the evidence.
    `check` is the preset's setting.
    """

    sentences: tuple[Sentence, ...] = ()
    fault: str = ""
    inferred: str = ""
    decision: ModelDecision | None = None
    shown: tuple[Evidence, ...] = ()
    check: Check = "drop"

    @property
    def stated(self) -> tuple[Sentence, ...]:
        """The sentences that the exact answer and the verdict may be based on."""
        return counted(self.sentences, self.check)

    @property
    def said(self) -> str:
        """The stated sentences as one text."""
        return " ".join(sentence.text for sentence in self.stated)

    @property
    def passed_on(self) -> str:
        """Text that the prompt for the exact answer contains: reasoning or ideal answer."""
        return self.inferred or self.said


async def write_ideal(briefing: Briefing, scorer: SupportScorer, recognise: Recognise) -> Draft:
    """Return the model's answer. Never raises LLMError: `fault` says what went wrong."""
    if briefing.model is None:
        return Draft(fault=ABSENT)
    shown: tuple[Evidence, ...] = ()
    if briefing.style.weigh:
        briefing, shown = await asyncio.to_thread(weighed, briefing, scorer)
    decision: Side | None = None
    side: Side | None = None
    tokens = briefing.limits.ideal_tokens
    try:
        if briefing.explains:
            if briefing.decides_first:
                decision = await _decide(briefing)
            side = decision or weigh(briefing.citations).side
            text, reasoning = await briefing.ask("explain", tokens, side.capitalize()), ""
        else:
            text, reasoning = await briefing.ask_reasoned("ideal", tokens, TEXT)
    except LLMError as error:
        log.warning("ideal answer to %s: %s", briefing.question.id or "a question", error)
        return Draft(fault=FAILED, shown=shown)
    text = text if isinstance(text, str) else ""
    if text.strip() and says_nothing(text):
        return Draft(decision="not stated", inferred=reasoning, shown=shown)
    pmids = (item.passage.pmid for item in briefing.evidence)
    claimed = clean_answer(text, {pmid: pmid for pmid in pmids} if briefing.style.weigh else {})
    if side:
        other = other_side(side)
        claimed = {s: cited for s, cited in claimed.items() if opening_verdict(s) != other}
    if briefing.question.type in LIMITS:
        body = briefing.question.body
        claimed = {s: cited for s, cited in claimed.items() if not answers_nothing(s, body)}
    checked = await asyncio.to_thread(_checked, briefing, claimed, scorer, recognise)
    kept, check = within_words(checked, briefing.style.max_words), briefing.style.check
    fault = "" if counted(kept, check) else UNUSABLE
    return Draft(kept, fault, reasoning, decision, shown, check)


async def _decide(briefing: Briefing) -> Side:
    """Return yes or no, decided before the model writes; raises LLMError as `Briefing.ask`."""
    words = ("yes", "no")
    yes, no = read_weights(await briefing.ask("decide", 1, weigh=words), words)
    return "yes" if yes > no * math.exp(YES_MARGIN) else "no"


async def write_supported(
    briefing: Briefing, answer: str, scorer: SupportScorer, recognise: Recognise
) -> tuple[tuple[Sentence, ...], str]:
    """Return sentences that justify `answer` and cite numbered passages, and a fault or "".

    Numbers without a passage are removed. If a cited passage does not support its sentence, the
    citation is corrected by attribution (paper 001, section 4.2).
    """
    if briefing.model is None:
        return (), ABSENT
    try:
        text = await briefing.ask("supported", briefing.limits.ideal_tokens, answer)
    except LLMError as error:
        log.warning("supported answer to %s: %s", briefing.question.id or "a question", error)
        return (), FAILED
    numbers = {number: item.passage.pmid for number, item in enumerate(briefing.shown, start=1)}
    claimed = clean_answer(text, numbers)
    kept = await asyncio.to_thread(_checked, briefing, claimed, scorer, recognise)
    return tuple(kept), "" if counted(kept, briefing.style.check) else UNUSABLE


def weighed(briefing: Briefing, scorer: SupportScorer) -> tuple[Briefing, tuple[Evidence, ...]]:
    """Return the briefing with evidence for and against, each passage with its PMID (paper 004).

    Also returns the passages of both sides that fit into the prompt.
    """
    limits = briefing.limits
    for_, against = split_by_stance(
        briefing.question.body, briefing.evidence, scorer, limits.thresholds, briefing.style.weigh
    )
    half = limits.evidence_characters // 2 if against else limits.evidence_characters
    values = {
        "supporting": number_passages(for_, half, by_pmid=True),
        "contradicting": number_passages(against, half, by_pmid=True) or "none found",
    }
    sides = (shown_passages(side, half, by_pmid=True) for side in (for_, against))
    shown = tuple(item for side in sides for item in side)
    return replace(briefing, values={**(briefing.values or {}), **values}), shown


def _checked(
    briefing: Briefing,
    claimed: Mapping[str, Sequence[int]],
    scorer: SupportScorer,
    recognise: Recognise,
) -> list[Sentence]:
    """Return the claimed sentences with their sources, checked as the preset sets it.

    With the check off, an unsupported sentence keeps the PMIDs that the model cited, if they are in
    the evidence.
    """
    evidence, check = briefing.evidence, briefing.style.check
    held = {item.passage.pmid for item in evidence}
    threshold = briefing.limits.thresholds.support
    found = attribute(list(claimed), evidence, scorer, threshold=threshold, claimed=claimed)
    kept = []
    for (text, pmids), sentence in zip(claimed.items(), found, strict=True):
        if holds_reference(text):
            continue
        if sentence is not None and _keeps_to(sentence, briefing, recognise):
            kept.append(sentence)
        elif check != "drop":
            own = [pmid for pmid in dict.fromkeys(pmids) if pmid in held and check == "off"]
            kept.append(Sentence(text, tuple(own[:MAX_PMIDS]), 0.0, unsupported=True))
    return kept


def counted(sentences: Sequence[Sentence], check: Check) -> tuple[Sentence, ...]:
    """Return the sentences that count: all if the check is off, else the supported ones."""
    return tuple(sentences) if check == "off" else supported(sentences)


def _keeps_to(sentence: Sentence, briefing: Briefing, recognise: Recognise) -> bool:
    """Return whether a cited passage has all of the sentence's numbers, and no name is made up.

    Paper 000 (section 5.1.4) reports a wrong number: 14% instead of the 24% in the passages.
    """
    evidence, body, said = briefing.evidence, briefing.question.body, read_wording(sentence.text)
    cited = [item.passage.text for item in evidence if item.passage.pmid in sentence.pmids]
    if not any(numbers_agree(said, read_wording(text)) for text in cited):
        return False
    names = [entity.text for entity in recognise(sentence.text)] + names_by_shape(sentence.text)
    return not borrowed_names(sentence, evidence, names, body) and not invented_names(
        sentence.text, evidence, names, body
    )


def within_words(sentences: Sequence[Sentence], limit: int) -> tuple[Sentence, ...]:
    """Return the first sentences that have at most `limit` words together; none is cut."""
    totals = accumulate(len(sentence.text.split()) for sentence in sentences)
    return tuple(s for s, total in zip(sentences, totals, strict=True) if total <= limit)


def answers_nothing(sentence: str, body: str) -> bool:
    """Return whether the sentence only repeats words of the question, as small models do."""
    return set(read_wording(sentence).words) <= set(read_wording(body).words)
