"""The ideal answer: written by the model, each sentence attributed to evidence or dropped."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from cluster.answers import Check, Evidence, Sentence, supported
from cluster.errors import LLMError
from serve.answer.ask_model import ABSENT, FAILED, UNUSABLE, Briefing
from serve.answer.cite_marks import clean_cited
from serve.answer.clean_answer import clean_answer
from serve.answer.names.group_names import LIMITS, Recogniser
from serve.answer.names.name_shapes import names_by_shape
from serve.answer.names.settle_exact import keeps_numbers, opening_verdict
from serve.answer.read_evidence import Side, other_side
from serve.llm.prompts import number_passages, quote, shown_passages
from serve.llm.reply_forms import (
    TEXT,
    Decision,
    read_reasoned,
    read_weights,
    reasoned_schema,
    says_nothing,
    summarise_reasoning,
)
from serve.support.attribute_sentences import MAX_PMIDS, SupportScorer, attribute
from serve.support.check_names import borrowed_names, invented_names
from serve.support.compare_wording import read_wording
from serve.support.find_references import holds_reference
from serve.support.weigh_evidence import Thresholds, split_by_stance

log = logging.getLogger(__name__)

# Log odds above which a "yes" is accepted, because small models lean to yes. On 88 training
# questions with gold passages, half of them "no", Qwen2.5-Coder-1.5B gives a question with "yes"
# higher odds than one with "no" in 97% of the pairs; it is right on 77% of the questions with a
# margin of 0 and on 92% with this one. If it wrote its answer before it decided, it was right on
# 58% to 67% of 24 of them.
YES_MARGIN = 2.0


@dataclass(frozen=True, slots=True)
class Draft:
    """The kept sentences, and `fault`: why there is no answer, or "".

    `inferred` is a summary of the model's reasoning. `decision` is the yes or no that the model
    gave before it wrote, or "not stated" if it says that the evidence does not answer, which is
    not a fault. `shown` are the passages in its prompt, if these are not the first ones. `check`
    is the preset's setting.
    """

    sentences: tuple[Sentence, ...] = ()
    fault: str = ""
    inferred: str = ""
    decision: Decision | None = None
    shown: tuple[Evidence, ...] = ()
    check: Check = "drop"

    @property
    def stated(self) -> tuple[Sentence, ...]:
        """The sentences on which the exact answer and the verdict may rest."""
        return counted(self.sentences, self.check)

    @property
    def said(self) -> str:
        """The stated sentences as one text."""
        return " ".join(sentence.text for sentence in self.stated)

    @property
    def passed_on(self) -> str:
        """Text about the ideal answer for the prompt of the exact stage."""
        return self.inferred or self.said


async def write_ideal(briefing: Briefing, scorer: SupportScorer, recognise: Recogniser) -> Draft:
    """Return the model's answer. Never raises LLMError: `fault` says what went wrong."""
    if briefing.model is None:
        return Draft(fault=ABSENT)
    shown: tuple[Evidence, ...] = ()
    if briefing.style.weigh:
        briefing, shown = await asyncio.to_thread(weighed, briefing, scorer)
    decision = None
    try:
        if briefing.decides_first:
            decision = await _decide(briefing)
            text, reasoning = await _explain(briefing, decision), ""
        else:
            text, reasoning = await _ask(briefing)
    except LLMError as error:
        log.warning("ideal answer of %s: %s", briefing.question.id, error)
        return Draft(fault=FAILED, shown=shown)
    if text.strip() and says_nothing(text):
        return Draft(decision="not stated", inferred=reasoning, shown=shown)
    claimed = _claims(briefing, text)
    if decision:
        other = other_side(decision)
        claimed = {s: pmids for s, pmids in claimed.items() if opening_verdict(s) != other}
    draft = await asyncio.to_thread(_attributed, briefing, claimed, scorer, recognise)
    return replace(draft, inferred=reasoning, decision=decision, shown=shown)


async def _decide(briefing: Briefing) -> Side:
    """Return yes or no, decided before the model writes; raises LLMError as `Briefing.ask`."""
    words = ("yes", "no")
    yes, no = read_weights(await briefing.ask("decide", 1, weigh=words), words)
    return "yes" if yes > no * math.exp(YES_MARGIN) else "no"


async def _explain(briefing: Briefing, decision: Side) -> str:
    return await briefing.ask("explain", briefing.limits.ideal_tokens, decision.capitalize())


async def write_supported(
    briefing: Briefing, answer: str, scorer: SupportScorer, recognise: Recogniser
) -> tuple[tuple[Sentence, ...], str]:
    """Return the sentences that justify `answer` by passages' numbers, and "" or a fault.

    A number without a passage is removed. If its passage does not support the sentence, it is
    corrected by attribution (paper 001, section 4.2).
    """
    if briefing.model is None:
        return (), ABSENT
    try:
        text = await briefing.ask("supported", briefing.limits.ideal_tokens, answer)
    except LLMError as error:
        log.warning("supported answer of %s: %s", briefing.question.id, error)
        return (), FAILED
    numbers = {number: item.passage.pmid for number, item in enumerate(briefing.shown, start=1)}
    claimed = clean_cited(text, numbers, briefing.prompt("supported").system)
    threshold = briefing.limits.support_threshold
    found = await asyncio.to_thread(
        attribute, list(claimed), briefing.evidence, scorer, threshold=threshold, claimed=claimed
    )
    kept = tuple(s for s in _checked(claimed, found, briefing, recognise) if s is not None)
    return kept, "" if counted(kept, briefing.style.check) else UNUSABLE


def weighed(briefing: Briefing, scorer: SupportScorer) -> tuple[Briefing, tuple[Evidence, ...]]:
    """Return the briefing with evidence for and against, each passage with its PMID (paper 004).

    Also returns the passages of both sides that fit into the prompt.
    """
    limits = briefing.limits
    thresholds = Thresholds(limits.support_threshold, limits.contradiction_threshold)
    for_, against = split_by_stance(
        briefing.question.body, briefing.evidence, scorer, thresholds, briefing.style.weigh
    )
    half = limits.evidence_characters // 2 if against else limits.evidence_characters
    values = {
        "supporting": number_passages(for_, half, by_pmid=True),
        "contradicting": number_passages(against, half, by_pmid=True) or "none found",
    }
    sides = (shown_passages(side, half, by_pmid=True) for side in (for_, against))
    shown = tuple(item for side in sides for item in side)
    return replace(briefing, values={**(briefing.values or {}), **values}), shown


async def _ask(briefing: Briefing) -> tuple[str, str]:
    """Return the answer's text and a summary of the reasoning before it."""
    tokens = briefing.limits.ideal_tokens
    if not briefing.style.reasoned:
        return await briefing.ask("ideal", tokens), ""
    schema = reasoned_schema(TEXT, tokens)
    reply = read_reasoned(await briefing.ask("ideal", tokens, json_schema=schema))
    answer = reply.answer if isinstance(reply.answer, str) else ""
    return answer, summarise_reasoning(quote(reply.reasoning))


def _claims(briefing: Briefing, text: str) -> Mapping[str, Sequence[int]]:
    """Return the sentences of `text` to check, each with the PMIDs that the model cited."""
    system = briefing.prompt("ideal").system
    if briefing.style.weigh:
        pmids = {item.passage.pmid: item.passage.pmid for item in briefing.evidence}
        return clean_cited(text, pmids, system)
    return dict.fromkeys(clean_answer(text, system), ())


def _attributed(
    briefing: Briefing,
    claimed: Mapping[str, Sequence[int]],
    scorer: SupportScorer,
    recognise: Recogniser,
) -> Draft:
    question, evidence = briefing.question, briefing.evidence
    sentences = list(claimed)
    if question.type in LIMITS:
        sentences = [s for s in sentences if not answers_nothing(s, question.body)]
    threshold = briefing.limits.support_threshold
    found = attribute(sentences, evidence, scorer, threshold=threshold, claimed=claimed)
    claims = {text: claimed[text] for text in sentences}
    cited = _checked(claims, found, briefing, recognise)
    kept = within_words([s for s in cited if s is not None], briefing.style.max_words)
    check = briefing.style.check
    return Draft(kept, "" if counted(kept, check) else UNUSABLE, check=check)


def _checked(
    claimed: Mapping[str, Sequence[int]],
    found: Sequence[Sentence | None],
    briefing: Briefing,
    recognise: Recogniser,
) -> list[Sentence | None]:
    """Return each sentence as the preset's `check` leaves it; None if it is dropped.

    `found` are the attributed sentences. With the check off, an unsupported sentence keeps the
    PMIDs that the model cited, if they are in the evidence.
    """
    check, held = briefing.style.check, {item.passage.pmid for item in briefing.evidence}
    kept: list[Sentence | None] = []
    for (text, pmids), sentence in zip(claimed.items(), found, strict=True):
        if (
            sentence is not None
            and _keeps_to(sentence, briefing.evidence)
            and not _strange_names(sentence, briefing, recognise)
        ):
            kept.append(sentence)
        elif check == "drop" or holds_reference(text):
            kept.append(None)
        else:
            own = [pmid for pmid in dict.fromkeys(pmids) if pmid in held and check == "off"]
            kept.append(Sentence(text, tuple(own[:MAX_PMIDS]), 0.0, unsupported=True))
    return kept


def counted(sentences: Sequence[Sentence], check: Check) -> tuple[Sentence, ...]:
    """Return the sentences that count: all if the check is off, else the supported ones."""
    return tuple(sentences) if check == "off" else supported(sentences)


def _keeps_to(sentence: Sentence, evidence: Sequence[Evidence]) -> bool:
    """Return whether the cited passages hold all its numbers, and it contains no reference."""
    cited = [item for item in evidence if item.passage.pmid in sentence.pmids]
    return keeps_numbers(
        sentence.text, [item.passage.text for item in cited]
    ) and not holds_reference(sentence.text)


def _strange_names(sentence: Sentence, briefing: Briefing, recognise: Recogniser) -> Sequence[str]:
    """Return the names that come from a passage not cited, or from none."""
    names = [entity.text for entity in recognise(sentence.text)]
    names += [name for name, _, _ in names_by_shape(sentence.text)]
    evidence, body = briefing.evidence, briefing.question.body
    return [
        *borrowed_names(sentence, evidence, names, body),
        *invented_names(sentence.text, evidence, names, body),
    ]


def within_words(sentences: Sequence[Sentence], limit: int) -> tuple[Sentence, ...]:
    """Return the first sentences that have at most `limit` words together; none is cut."""
    totals = accumulate(len(sentence.text.split()) for sentence in sentences)
    return tuple(s for s, total in zip(sentences, totals, strict=True) if total <= limit)


def answers_nothing(sentence: str, body: str) -> bool:
    """Return whether the sentence only repeats words of the question, as small models do."""
    return set(read_wording(sentence).words) <= set(read_wording(body).words)
