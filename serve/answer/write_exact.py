"""Write the exact answer: chosen by the model under a constraint, or taken from the evidence.

The ideal and the exact answer follow one decision. With CiteRay's own prompts, the model decides
yes or no first, and the prompt for the ideal answer states its decision. Otherwise the prompt
for the exact answer contains the sentences of the ideal answer that passed the check.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cluster.answers import ExactAnswer, Sentence
from cluster.errors import LLMError
from serve.answer.ask_model import ABSENT, FAILED, UNUSABLE, Briefing
from serve.answer.extract_answer import extract_exact, states
from serve.answer.names.cluster_names import Recognise
from serve.answer.names.group_names import LIMITS, MAX_CHARS, apart, group_names
from serve.answer.names.rank_names import repeats
from serve.answer.names.settle_exact import names_in, opening_verdict, settle_names
from serve.answer.write_ideal import Draft
from serve.llm.reply_forms import (
    DECISIONS,
    YESNO,
    ModelDecision,
    entities_schema,
    names_schema,
    read_entities,
    read_names,
)
from serve.support.attribute_sentences import stated_text

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Exact:
    """The exact answer; `fault` says why the model did not give it, or is "".

    `guesses` are up to five separate names for a factoid question that asks for guesses, which
    BioASQ's measures reward; for any other question they equal `answer`.
    `decision` is the model's decision, or None if it was not asked or its reply was unusable. If
    it is "mixed" or "not stated", the answer is the best guess from the evidence.
    """

    answer: ExactAnswer = None
    fault: str = ""
    decision: ModelDecision | None = None
    guesses: ExactAnswer = None


async def write_exact(briefing: Briefing, draft: Draft, recognise: Recognise) -> Exact:
    """Return the exact answer that matches the ideal one. Never raises LLMError."""
    found = await _by_model(briefing, draft, recognise)
    names = found.answer if isinstance(found.answer, list) else []
    if not found.answer:
        evident = await asyncio.to_thread(_from_evidence, briefing, draft)
        found = replace(found, answer=evident)
    question = briefing.question
    if question.type != "factoid" or not question.guess:
        return replace(found, guesses=found.answer)
    return replace(found, guesses=_guesses(briefing, names))


async def _by_model(briefing: Briefing, draft: Draft, recognise: Recognise) -> Exact:
    """Return the model's exact answer, without an `answer` if it gave none or is not asked."""
    if briefing.limits.exact_from == "evidence":
        return Exact()
    found = Exact(fault=draft.fault)
    if draft.decision == "not stated":
        found = Exact(decision="not stated")
    elif draft.decision:
        found = Exact(draft.decision, decision=draft.decision)
    # Do not call the model again if it has just failed.
    elif draft.fault not in (FAILED, ABSENT):
        try:
            found = await _decide(briefing, draft, recognise)
        except LLMError as error:
            log.warning("exact answer to %s: %s", briefing.question.id or "a question", error)
            found = Exact(fault=FAILED)
    return found


async def _decide(briefing: Briefing, draft: Draft, recognise: Recognise) -> Exact:
    """Ask the model for its decision, in the form that the preset sets."""
    if briefing.question.type == "yesno":
        return await _verdict(briefing, draft)
    names = await _names(briefing, draft)
    groups = await asyncio.to_thread(_named, briefing, names, draft.stated, recognise)
    return Exact(groups) if groups else Exact(fault=UNUSABLE)


async def _verdict(briefing: Briefing, draft: Draft) -> Exact:
    """Return the model's decision; a yes or no that opens its ideal answer takes precedence."""
    # A paper's prompt allows only yes and no; ours also allows "mixed" and "not stated".
    choices = ("yes", "no") if briefing.has_own("exact") else DECISIONS
    tokens = briefing.limits.exact_tokens
    reply, _ = await briefing.ask_reasoned("exact", tokens, YESNO, draft.passed_on, choices=choices)
    word = reply.strip().casefold() if isinstance(reply, str) else ""
    chosen = next((decision for decision in DECISIONS if decision == word), None)
    decision = (opening_verdict(draft.stated[0].text) if draft.stated else None) or chosen
    if decision is None:
        return Exact(fault=UNUSABLE)
    return Exact(decision if decision in ("yes", "no") else None, decision=decision)


async def _names(briefing: Briefing, draft: Draft) -> Sequence[str]:
    limit = LIMITS[briefing.question.type]
    reply, _ = await briefing.ask_reasoned(
        "exact",
        briefing.limits.exact_tokens,
        names_schema(limit, MAX_CHARS),
        draft.passed_on,
        json_schema=entities_schema(limit, MAX_CHARS),
    )
    return read_names(reply) if briefing.style.reasoned else read_entities(reply)


def _named(
    briefing: Briefing, names: Sequence[str], ideal: Sequence[Sentence], recognise: Recognise
) -> ExactAnswer:
    """Return the names found in the evidence or the checked answer, grouped with synonyms."""
    kind = briefing.question.type
    sources = [stated_text(item.passage.text) for item in briefing.evidence]
    sources += [sentence.text for sentence in ideal]
    body = briefing.question.body
    kept = [name for name in names_in(names, sources) if not repeats(name, body)]
    groups = group_names(kept, briefing.evidence, recognise)
    return settle_names(groups, limit=LIMITS[kind], max_chars=MAX_CHARS)


def _guesses(briefing: Briefing, names: Sequence[Sequence[str]]) -> ExactAnswer:
    """Return the model's `names`, then those of the evidence, each as a separate guess."""
    groups = apart([*names, *(answer.names for answer in briefing.answers)])
    return settle_names(groups, limit=LIMITS["factoid"], max_chars=MAX_CHARS)


def _from_evidence(briefing: Briefing, draft: Draft) -> ExactAnswer:
    question = briefing.question
    exact = extract_exact(question, briefing.citations, briefing.answers)
    if not isinstance(exact, list):
        return exact
    if question.type == "factoid":
        exact = stated_in(draft.stated, exact)
    return settle_names(exact, limit=LIMITS[question.type], max_chars=MAX_CHARS)


def stated_in(ideal: Sequence[Sentence], exact: list[list[str]]) -> list[list[str]]:
    """Return the names that the ideal answer states; all of them if it states none."""
    said = " ".join(sentence.text for sentence in ideal)
    return [names for names in exact if states(said, names)] or exact
