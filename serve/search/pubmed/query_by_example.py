"""Few-shot generation of PubMed queries from solved questions (paper 001, section 4.1).

The paper's agent has a small store of questions with queries that found their articles. It adapts
the query of a similar question, with its MeSH terms, synonyms and operators.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from cluster.errors import InputError, LLMError
from cluster.settings.read_config import CONFIGS, read_config, read_yaml
from cluster.text.analysis import analyse
from serve.contracts.watched_model import WatchedModel
from serve.llm.prompts import quote, search_prompt

STAGE = "rewrite"
UNWRITTEN = "question not searched online by examples"
TOKENS, TEMPERATURE = 96, 0.0
MAX_CHARACTERS = 300

_LABEL = re.compile(r"^\W*query\s*:\s*", re.IGNORECASE)


class SolvedQuestion(BaseModel):
    """A question and the PubMed query that found its articles."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: Annotated[str, Field(min_length=1, max_length=2000)]
    query: Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]


@cache
def read_solved(name: str) -> tuple[SolvedQuestion, ...]:
    """Return the `questions` of a YAML file, given by path or by its name in configs/examples.

    Raises InputError if the file is missing or malformed.
    """
    shipped = CONFIGS / "examples" / name
    data = read_yaml(read_config(shipped if shipped.is_file() else Path(name), name), name)
    try:
        form = TypeAdapter(Mapping[str, tuple[SolvedQuestion, ...]])
        return form.validate_python(data)["questions"]
    except (ValidationError, KeyError):
        raise InputError(
            f"{name}: expected `questions`, a list of items with a question and its query of at "
            f"most {MAX_CHARACTERS} characters"
        ) from None


def most_similar(
    question: str, solved: Sequence[SolvedQuestion], limit: int
) -> list[SolvedQuestion]:
    """Return up to `limit` of `solved` that are most similar to the question, best first.

    Similarity is the sum of the IDF weights of shared terms, divided by the square root of the
    number of terms. Questions that share no term are left out.
    """
    terms = [Counter(analyse(item.question)) for item in solved]
    found_in = Counter(term for counts in terms for term in counts)
    asked = set(analyse(question))
    weight = {term: math.log(1 + len(solved) / found_in[term]) for term in asked & found_in.keys()}

    def nearness(position: int) -> float:
        own = terms[position]
        return sum(weight[t] for t in own.keys() & weight.keys()) / math.sqrt(len(own) or 1)

    order = sorted(range(len(solved)), key=lambda place: (-nearness(place), place))
    return [solved[place] for place in order if nearness(place) > 0][:limit]


async def query_by_example(
    question: str, solved: Sequence[SolvedQuestion], model: WatchedModel
) -> str:
    """Return a query modelled on the examples, or "" without examples or if the model fails."""
    if not solved:
        return ""
    shown = "\n\n".join(
        f"Question: {quote(item.question)}\nQuery: {item.query}" for item in reversed(solved)
    )
    messages = search_prompt("pubmed-query").messages(examples=shown, question=quote(question))
    said = await model.ask(
        STAGE, messages, read_query, UNWRITTEN, max_tokens=TOKENS, temperature=TEMPERATURE
    )
    return said or ""


def read_query(text: str) -> str:
    """Return the first line of a reply as a query.

    Raises LLMError if it has no word, is too long, or has an unbalanced bracket or quote, which
    PubMed would interpret differently.
    """
    lines = [line.strip() for line in text.splitlines() if any(c.isalnum() for c in line)]
    query = _LABEL.sub("", lines[0]).strip("`") if lines else ""
    if not query or len(query) > MAX_CHARACTERS or not _closes(query):
        raise LLMError(f"llm: no PubMed query in the reply of {len(text)} characters")
    return query


def _closes(query: str) -> bool:
    outside = re.sub(r'"[^"]*"', "", query)
    opened: list[str] = []
    for character in outside:
        if character in "([":
            opened.append(character)
        elif character in ")]" and (not opened or opened.pop() != {")": "(", "]": "["}[character]):
            return False
    return not opened and '"' not in outside
