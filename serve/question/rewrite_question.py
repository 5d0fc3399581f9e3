"""Rewrite a question for the search with a language model.

If the model fails, each function returns an empty result, and the StageWatch records this.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from cluster.errors import LLMError
from cluster.text.analysis import Analyser
from serve.contracts.watched_model import WatchedModel
from serve.llm.prompts import quote, search_prompt

STAGE = "rewrite"
KEPT = "question not rewritten"
# Temperature of all model calls in paper 002 (section 3.4 and appendix A).
TEMPERATURE = 0.1
SUB_QUESTIONS = 3
# Paper 003 gives no value. The temperature makes samples differ.
PARAGRAPH_TEMPERATURE = 0.7
MAX_QUERY_CHARACTERS = 300

_NUMBERED = re.compile(r"^\W*(?:query\s*)?\d+\s*[.:)\-]+\s*(\S.*)$", re.IGNORECASE)


async def decompose(question: str, model: WatchedModel, tokens: int) -> list[str]:
    """Return up to three queries, each for one aspect of the question.

    Paper 002, section 3.3 (V5) and appendix A. Returns [] if the model fails.
    """
    messages = search_prompt("sub-questions").messages(question=quote(question))
    queries = await model.ask(
        STAGE, messages, read_queries, KEPT, max_tokens=tokens, temperature=TEMPERATURE
    )
    return queries or []


def read_queries(text: str) -> list[str]:
    """Return up to three distinct queries from lines such as "Query 1: ...".

    Raises LLMError if no line is numbered.
    """
    lines = (_NUMBERED.match(line) for line in text.splitlines())
    queries = [" ".join(m[1].strip(" \"'*").split())[:MAX_QUERY_CHARACTERS] for m in lines if m]
    if not any(queries):
        raise LLMError(f"llm: no numbered query in the reply of {len(text)} characters")
    return list(dict.fromkeys(query for query in queries if query))[:SUB_QUESTIONS]


async def write_paragraphs(
    prompt: Literal["hyde", "pseudo-document", "continue"],
    question: str,
    models: Sequence[WatchedModel],
    tokens: int,
) -> list[str]:
    """Return a paragraph from each of `models` that replies; a repeated model is sampled again.

    "hyde" asks for a hypothetical PubMed abstract, which is embedded instead of the question. HyDE,
    paper 002, section 3.3 (V2) and appendix A.

    "pseudo-document" asks for paragraphs that answer the question. Paper 003, section 3.1, with its
    prompt; the paper uses one text from GPT-3.5 and one from Gemini. "continue" asks for a
    continuation of the question. Paper 004, section 2.1, uses BioGPT-Large and gives no prompt.
    """
    messages = search_prompt(prompt).messages(question=quote(question))
    few = f"fewer than {len(models)} pseudo-documents"
    consequence = few if len(models) > 1 else KEPT
    alone = TEMPERATURE if prompt == "hyde" else 0.0
    said = await asyncio.gather(
        *(
            model.ask(
                STAGE,
                messages,
                _some_text,
                consequence,
                max_tokens=tokens,
                temperature=PARAGRAPH_TEMPERATURE if len(models) > 1 else alone,
                # Different seeds, so that a model listed twice gives different texts.
                seed=number if len(models) > 1 else None,
            )
            for number, model in enumerate(models)
        )
    )
    return [text for text in said if text is not None]


def entity_query(
    question: str, names: Sequence[Sequence[str]], repeat: int, analyser: Analyser
) -> dict[str, float]:
    """Return BM25 term weights: the question's terms times `repeat`, plus the documents' names.

    Paper 003, equation 3: a name counts once per document, however often it occurs there.
    """
    counts = Counter(analyser.terms(question))
    weights: dict[str, float] = {term: repeat * n for term, n in counts.items()}
    for of_document in names:
        distinct = dict.fromkeys(name.casefold() for name in of_document)
        for term, times in Counter(analyser.terms(" ".join(distinct))).items():
            weights[term] = weights.get(term, 0.0) + times
    return weights


def _some_text(text: str) -> str:
    """Return the reply on one line; raises LLMError if it has no word."""
    joined = " ".join(text.split())
    if not any(c.isalnum() for c in joined):
        raise LLMError(f"llm: the reply of {len(text)} characters has no word")
    return joined
