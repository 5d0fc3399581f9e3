"""Listwise and pointwise reranking by a language model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from cluster.errors import LLMError, brief
from cluster.settings.search_settings import RerankSettings
from serve.contracts.watched_model import WatchedModel
from serve.llm.prompts import Prompt, quote, search_prompt

STAGE = "rerank"
KEPT = "first-stage order kept"
GRADES = ("0", "1", "2", "3")
GRADES_AT_ONCE = 8
# "[20] > " is about five tokens.
TOKENS_A_NUMBER = 6

_BRACKETED = re.compile(r"\[\s*([0-9]+)\s*\]")
_BARE = re.compile(r"[0-9]+")


async def rerank_listwise(
    question: str,
    passages: Sequence[str],
    model: WatchedModel,
    rerank: RerankSettings,
) -> list[int] | None:
    """Return the indices of `passages` in the model's order; None if the model fails.

    A window of `rerank.window` passages slides from the end of the list to its start in steps of
    `rerank.stride`, so that relevant passages move up (RankZephyr, arXiv:2312.02724; paper 004,
    section 2.2, uses its defaults, a window of 20 and a stride of 10). After a failure the model is
    not called again.
    """
    order = list(range(len(passages)))
    prompt = search_prompt(rerank.prompt)
    for begin, end in windows(len(passages), rerank.window, rerank.stride):
        shown = order[begin:end]
        texts = [passages[position] for position in shown]
        ranked = await _rank_window(question, texts, model, prompt)
        if ranked is None:
            return None
        order[begin:end] = [shown[position] for position in ranked]
    return order


def windows(count: int, size: int, stride: int) -> list[tuple[int, int]]:
    """Return (begin, end) of the windows over `count` items, from the last to the first.

    Windows of one item are left out, because they need no reranking.
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
    each = model.evidence_characters // len(passages)
    # A bracketed number within a passage would be mistaken for a passage number.
    texts = (_BRACKETED.sub(r"(\1)", quote(text)) for text in passages)
    lines = (f"[{n}] {text}"[:each] for n, text in enumerate(texts, 1))
    messages = prompt.messages(
        question=quote(question), evidence="\n".join(lines), count=str(len(passages))
    )

    def read(text: str) -> list[int]:
        if not _BARE.search(text):
            raise LLMError(f"llm: no ranking in the reply of {len(text)} characters")
        return read_permutation(text, len(passages))

    tokens = TOKENS_A_NUMBER * len(passages) + TOKENS_A_NUMBER
    return await model.ask(STAGE, messages, read, KEPT, max_tokens=tokens)


def read_permutation(text: str, count: int) -> list[int]:
    """Return the indices 0 to `count` - 1 in the order in which `text` lists the numbers from 1.

    The result is always a permutation: unknown and repeated numbers are ignored, and indices that
    are not listed follow in their original order. If the text has numbers in brackets, all other
    numbers are ignored.
    """
    said = _BRACKETED.findall(text) or _BARE.findall(text)
    places = {str(position + 1): position for position in range(count)}
    named = [places[n] for n in (digits.lstrip("0") for digits in said) if n in places]
    return list(dict.fromkeys([*named, *range(count)]))


async def rerank_pointwise(
    question: str, passages: Sequence[str], model: WatchedModel
) -> list[float] | None:
    """Return one score per passage, in order: 0, 1/3, 2/3 or 1. None if the model fails.

    Passages are graded separately, up to GRADES_AT_ONCE concurrently. The caller orders ties.
    """
    turns = asyncio.Semaphore(GRADES_AT_ONCE)
    lost = False
    prompt = search_prompt("grade-passage")

    async def grade(passage: str) -> float | None:
        nonlocal lost
        async with turns:
            # Do not wait for a model that has just failed.
            if lost:
                return None
            shown = quote(passage)[: model.evidence_characters]
            messages = prompt.messages(question=quote(question), evidence=shown)
            score = await model.ask(STAGE, messages, read_grade, KEPT, max_tokens=2, choices=GRADES)
            lost = lost or score is None
            return score

    grades = await asyncio.gather(*(grade(passage) for passage in passages))
    scores = [g for g in grades if g is not None]
    return scores if len(scores) == len(grades) else None


def read_grade(text: str) -> float:
    """Return the grade as a score from 0 to 1; raises LLMError if `text` is not a grade."""
    said = text.strip()
    if said not in GRADES:
        raise LLMError(f"llm: {brief(text)}: no grade from 0 to 3")
    return int(said) / 3
