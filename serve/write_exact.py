"""The exact answer, by type: chosen by the model under a constraint, or from the evidence."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from cluster.errors import LLMError
from cluster.records import ExactAnswer, Sentence
from serve.ask_model import Briefing
from serve.clean_answer import clean_entities
from serve.extract_exact import MAX_CHARS, Recogniser, extract_exact, group_names
from serve.reply_forms import (
    YESNO,
    entities_schema,
    names_schema,
    read_entities,
    read_names,
    read_reasoned,
    reasoned_schema,
)
from serve.settle_exact import LIMITS, settle_exact, settle_names

log = logging.getLogger(__name__)

FAILED = "llm: failed"
UNUSABLE = "llm: nothing usable"
ABSENT = "llm: not configured"


async def write_exact(
    briefing: Briefing,
    ideal: Sequence[Sentence],
    inferred: str,
    fault: str,
    recognise: Recogniser,
) -> tuple[ExactAnswer, str]:
    """(exact answer, "" or why the model did not give it); `fault` is the ideal stage's.

    `inferred` is what the ideal stage passes on: its answer, or a summary of its reasoning.
    """
    exact: ExactAnswer = None
    question, evidence = briefing.question, briefing.evidence
    by_choice = briefing.limits.exact_from == "evidence"
    # A model that has just failed is not waited for a second time.
    if not by_choice and fault not in (FAILED, ABSENT):
        try:
            ask = _reasoned if briefing.style.reasoned else _constrained
            exact = await ask(briefing, inferred, recognise)
            fault = "" if exact else UNUSABLE
        except LLMError as error:
            log.warning("exact answer of %s: %s", question.id, error)
            fault = FAILED
    if by_choice or fault:
        exact = await asyncio.to_thread(
            extract_exact, question.type, question.body, evidence, recognise
        )
        exact = answered_first(exact, ideal)
        if isinstance(exact, list):
            exact = settle_names(exact, limit=LIMITS[question.type], max_chars=MAX_CHARS)
    return exact, "" if by_choice else fault


async def _constrained(briefing: Briefing, inferred: str, recognise: Recogniser) -> ExactAnswer:
    """The model's bare choice; None for none that can be used."""
    tokens = briefing.limits.exact_tokens
    if briefing.question.type == "yesno":
        choices = ("yes", "no")
        word = await briefing.ask("exact", tokens, inferred, choices=choices)
        return _yes_or_no(briefing, word, None)
    schema = entities_schema(LIMITS[briefing.question.type], MAX_CHARS)
    text = await briefing.ask("exact", tokens, inferred, json_schema=schema)
    return await asyncio.to_thread(_named, briefing, read_entities(text), recognise)


async def _reasoned(briefing: Briefing, inferred: str, recognise: Recogniser) -> ExactAnswer:
    """The model's choice after its reasoning; a yes must quote a passage."""
    kind, tokens = briefing.question.type, briefing.limits.exact_tokens
    yesno = kind == "yesno"
    answer = YESNO if yesno else names_schema(LIMITS[kind], MAX_CHARS)
    schema = reasoned_schema(answer, quoted=yesno)
    reply = read_reasoned(await briefing.ask("exact", tokens, inferred, json_schema=schema))
    if yesno:
        word = reply.answer if isinstance(reply.answer, str) else ""
        return _yes_or_no(briefing, word, reply.quote)
    return await asyncio.to_thread(_named, briefing, read_names(reply.answer), recognise)


def _yes_or_no(briefing: Briefing, text: str, quote: str | None) -> ExactAnswer:
    word = text.strip().casefold()
    if word not in ("yes", "no"):
        return None
    body = briefing.question.body
    settled = settle_exact("yesno", word, body, briefing.evidence, quote)
    if settled != word:
        log.info("exact answer of %s: no passage affirms the yes", briefing.question.id)
    return settled


def _named(briefing: Briefing, names: Sequence[str], recognise: Recogniser) -> ExactAnswer:
    """Those names that the evidence has, names of one thing in one group."""
    kind = briefing.question.type
    sources = [item.passage.text for item in briefing.evidence]
    kept = clean_entities(names, sources, limit=LIMITS[kind], max_chars=MAX_CHARS)
    groups = group_names(kept, briefing.evidence, recognise)
    return settle_exact(kind, groups, briefing.question.body, briefing.evidence)


def answered_first(exact: ExactAnswer, ideal: Sequence[Sentence]) -> ExactAnswer:
    """Entities that the ideal answer names before those that it does not; else their order."""
    if not isinstance(exact, list):
        return exact
    said = " ".join(sentence.text for sentence in ideal).casefold()
    return sorted(exact, key=lambda names: not any(name.casefold() in said for name in names))
