"""Passages put in order by a language model: a list at a time, or one by one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from cluster.errors import LLMError, brief
from cluster.settings.search_settings import RerankSettings
from serve.llm.prompts import Prompt, quote
from serve.llm.watched_model import WatchedModel
from serve.search.search_prompts import search_prompt

STAGE = "rerank"
KEPT = "first-stage order kept"
GRADES = ("0", "1", "2", "3")
GRADES_AT_ONCE = 8
# "[20] > " is some five tokens.
TOKENS_A_NUMBER = 6

_BRACKETED = re.compile(r"\[\s*([0-9]+)\s*\]")
_BARE = re.compile(r"[0-9]+")


async def rerank_listwise(
    question: str,
    passages: Sequence[str],
    model: WatchedModel,
    rerank: RerankSettings,
) -> list[int] | None:
    """The places of `passages` in the model's order; None where the model is lost.

    A window of `rerank.window` slides from the end of the list to its start by `rerank.stride`, so
    that what is good rises with it (RankZephyr, arXiv:2312.02724; paper 004, section 2.2, uses it
    as it comes, which is with windows of 20 and strides of 10). Once the model is lost it is asked
    no more.
    """
    order = list(range(len(passages)))
    prompt = search_prompt(rerank.prompt)
    for begin, end in windows(len(passages), rerank.window, rerank.stride):
        shown = order[begin:end]
        texts = [passages[place] for place in shown]
        ranked = await _rank_window(question, texts, model, prompt)
        if ranked is None:
            return None
        order[begin:end] = [shown[place] for place in ranked]
    return order


def windows(count: int, size: int, stride: int) -> list[tuple[int, int]]:
    """(begin, end) of the windows over `count` places, from the last to the first.

    A window of one place is left out: there is nothing to order.
    """
    spans: list[tuple[int, int]] = []
    end = count
    while end > 1:
        begin = max(end - size, 0)
        spans.append((begin, end))
        if begin == 0:
            break
        end -= stride
    return spans


async def _rank_window(
    question: str, passages: Sequence[str], model: WatchedModel, prompt: Prompt
) -> list[int] | None:
    each = model.limits.evidence_characters // len(passages)
    # A number in a passage's own brackets would be read as a passage's.
    texts = (_BRACKETED.sub(r"(\1)", quote(text)) for text in passages)
    lines = (f"[{n}] {text}"[:each] for n, text in enumerate(texts, 1))
    messages = prompt.messages(
        question=quote(question), evidence="\n".join(lines), count=str(len(passages))
    )

    def read(text: str) -> list[int]:
        if not _BARE.search(text):
            raise LLMError(f"llm: no ranking in its {len(text)} characters")
        return read_permutation(text, len(passages))

    tokens = TOKENS_A_NUMBER * len(passages) + TOKENS_A_NUMBER
    return await model.ask(STAGE, messages, read, KEPT, max_tokens=tokens)


def read_permutation(text: str, count: int) -> list[int]:
    """The places 0 to `count` - 1 in the order that `text` numbers them, from 1.

    Whatever the text, each place comes once: numbers of no passage and repeated ones are
    left out, and places that are not named follow in the order they had. Where there are
    numbers in brackets, other numbers are no identifiers.
    """
    said = _BRACKETED.findall(text) or _BARE.findall(text)
    places = {str(place + 1): place for place in range(count)}
    named = [places[n] for n in (digits.lstrip("0") for digits in said) if n in places]
    return list(dict.fromkeys([*named, *range(count)]))


async def rerank_pointwise(
    question: str, passages: Sequence[str], model: WatchedModel
) -> list[float] | None:
    """A score a passage, 0 to 1 in thirds, in their order; None where the model is lost.

    Each is graded by itself, a few at once. Equal grades are the caller's to order.
    """
    turns = asyncio.Semaphore(GRADES_AT_ONCE)
    lost = False
    prompt = search_prompt("grade-passage")

    async def grade(passage: str) -> float | None:
        nonlocal lost
        async with turns:
            # A model that has just failed is not waited for again.
            if lost:
                return None
            shown = quote(passage)[: model.limits.evidence_characters]
            messages = prompt.messages(question=quote(question), evidence=shown)
            score = await model.ask(STAGE, messages, read_grade, KEPT, max_tokens=2, choices=GRADES)
            lost = lost or score is None
            return score

    grades = await asyncio.gather(*(grade(passage) for passage in passages))
    scores = [g for g in grades if g is not None]
    return scores if len(scores) == len(grades) else None


def read_grade(text: str) -> float:
    """Raises LLMError where `text` is no grade."""
    said = text.strip()
    if said not in GRADES:
        raise LLMError(f"llm: {brief(text)}: no grade from 0 to 3")
    return int(said) / 3
