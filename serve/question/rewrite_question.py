"""A question put into other words for the search, by a language model.

A part that loses the model returns what the question alone would give, and the watch
holds the loss.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence

from cluster.errors import LLMError
from cluster.text.analysis import analyse
from serve.llm.chat_form import Message
from serve.llm.prompts import quote
from serve.llm.watched_model import WatchedModel
from serve.search.search_prompts import search_prompt

STAGE = "rewrite"
KEPT = "question not rewritten"
# Paper 002, section 3.4 and appendix A, for every call of it.
TEMPERATURE = 0.1
SUB_QUESTIONS = 3
# Paper 003 names no limits: a paragraph, and enough heat that two of them differ.
PARAGRAPH_TOKENS, PARAGRAPH_TEMPERATURE = 256, 0.7
MAX_QUERY_CHARACTERS = 300

_NUMBERED = re.compile(r"^\W*(?:query\s*)?\d+\s*[.:)\-]+\s*(\S.*)$", re.IGNORECASE)


async def write_hypothesis(question: str, model: WatchedModel, tokens: int) -> str | None:
    """A PubMed-style abstract that would answer, to be embedded in place of the question.

    HyDE, paper 002, section 3.3 (V2) and appendix A. None where the model is lost.
    """
    messages = search_prompt("hyde").messages(question=quote(question))
    return await model.ask(
        STAGE, messages, _some_text, KEPT, max_tokens=tokens, temperature=TEMPERATURE
    )


async def decompose(question: str, model: WatchedModel, tokens: int) -> list[str]:
    """Up to three queries, each for one aspect of the question; none where the model is lost.

    Paper 002, section 3.3 (V5) and appendix A.
    """
    messages = search_prompt("sub-questions").messages(question=quote(question))
    queries = await model.ask(
        STAGE, messages, read_queries, KEPT, max_tokens=tokens, temperature=TEMPERATURE
    )
    return queries or []


def read_queries(text: str) -> list[str]:
    """The queries of lines such as "Query 1: ...", each once, at most three.

    Raises LLMError where no line is numbered.
    """
    lines = (_NUMBERED.match(line) for line in text.splitlines())
    queries = [" ".join(m[1].strip(" \"'*").split())[:MAX_QUERY_CHARACTERS] for m in lines if m]
    if not any(queries):
        raise LLMError(f"llm: no numbered query in its {len(text)} characters")
    return list(dict.fromkeys(query for query in queries if query))[:SUB_QUESTIONS]


async def write_pseudo_documents(
    question: str, models: Sequence[WatchedModel], tokens: int = PARAGRAPH_TOKENS
) -> list[str]:
    """Paragraphs that answer the question, one from each of `models`, without those of lost ones.

    Paper 003, section 3.1, with its prompt. It asks GPT-3.5 and Gemini for one each. A model that
    is named twice draws anew.
    """
    messages = search_prompt("pseudo-document").messages(question=quote(question))
    return await _paragraphs(messages, models, tokens)


async def continue_question(question: str, model: WatchedModel, tokens: int) -> str | None:
    """What the model says after the question alone; None where it is lost.

    Paper 004, section 2.1, expands by BioGPT-Large and tells no prompt.
    """
    messages = search_prompt("continue").messages(question=quote(question))
    said = await _paragraphs(messages, [model], tokens)
    return said[0] if said else None


async def _paragraphs(
    messages: Sequence[Message], models: Sequence[WatchedModel], tokens: int
) -> list[str]:
    few = f"fewer than {len(models)} pseudo-documents"
    consequence = few if len(models) > 1 else KEPT
    said = await asyncio.gather(
        *(
            model.ask(
                STAGE,
                messages,
                _some_text,
                consequence,
                max_tokens=tokens,
                temperature=PARAGRAPH_TEMPERATURE if len(models) > 1 else 0.0,
                # Each its own, or a model that is named twice would say the same twice.
                seed=number if len(models) > 1 else None,
            )
            for number, model in enumerate(models)
        )
    )
    return [text for text in said if text is not None]


def entity_query(question: str, names: Sequence[Sequence[str]], repeat: int) -> dict[str, float]:
    """BM25 term weights of the question `repeat` times, then of each document's names.

    Paper 003, equation 3: a name counts once for each document that holds it, however often.
    """
    weights: dict[str, float] = {t: repeat * n for t, n in Counter(analyse(question)).items()}
    for of_document in names:
        distinct = dict.fromkeys(name.casefold() for name in of_document)
        for term, times in Counter(analyse(" ".join(distinct))).items():
            weights[term] = weights.get(term, 0.0) + times
    return weights


def _some_text(text: str) -> str:
    """The reply on one line; raises LLMError where it holds no word."""
    joined = " ".join(text.split())
    if not any(c.isalnum() for c in joined):
        raise LLMError(f"llm: the reply of {len(text)} characters holds no word")
    return joined
