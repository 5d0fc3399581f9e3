"""Compare an answer with what its row expects."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cluster.answers import Answer
from tests.answers.suite import RealRow, Row

Outcome = Literal["right", "held back", "wrong"]
# Words that an answer may add to a name ("CFTR gene") and to a phrase before it counts as another.
EXTRA_WORDS = 3
EXTRA_PHRASE_WORDS = 12
PHRASE_WORDS = 2
# A list is right from this F1 on.
LIST_F1 = 0.5
_GREEK = str.maketrans(
    {"\u03b1": "alpha", "\u03b2": "beta", "\u03b3": "gamma", "\u03b4": "delta", "\u03bc": "u"}
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """`wrong` is an answer that the evidence does not allow, `held back` one that was not given."""

    outcome: Outcome
    reason: str = ""


RIGHT = Judgement("right")


def words(text: str) -> tuple[str, ...]:
    """The words and numbers of `text` by which names are compared."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_GREEK)
    return tuple(re.findall(r"\d+(?:\.\d+)?|[^\W\d_]+|%", plain))


def holds(text: str, name: str) -> bool:
    """Whether the words of `name` stand in `text` one after another."""
    whole, part = words(text), words(name)
    width = len(part)
    return any(whole[at : at + width] == part for at in range(len(whole) - width + 1))


def same_thing(said: str, name: str) -> bool:
    """Whether `said` is `name`, perhaps with a few more words around it."""
    extra = EXTRA_PHRASE_WORDS if len(words(name)) > PHRASE_WORDS else EXTRA_WORDS
    return holds(said, name) and len(words(said)) - len(words(name)) <= extra


def find_expected(said: Sequence[str], expected: Sequence[Sequence[str]]) -> int | None:
    """Which of the expected things one answer names, given by its synonyms; None if none."""
    for at, names in enumerate(expected):
        if any(same_thing(one, name) for one in said for name in names):
            return at
    return None


def find_forbidden(exact: Sequence[Sequence[str]], row: Row) -> list[str]:
    """The answers that name a thing of the wrong type."""
    assert isinstance(row.expected, tuple)
    found = []
    for said in exact:
        is_expected = find_expected(said, row.expected) is not None
        for one in said:
            alike = any(words(one) == words(name) for name in row.forbidden)
            inside = not is_expected and any(holds(one, name) for name in row.forbidden)
            if alike or inside:
                found.append(one)
    return found


def judge(row: Row | RealRow, answer: Answer) -> Judgement:
    """What the answer is worth."""
    if row.expected is None:
        if answer.verdict == "not_enough_evidence":
            return RIGHT
        return Judgement("wrong", f"{answer.verdict}, but the collection has no answer")
    if isinstance(row.expected, str):
        return _judge_polarity(row.expected, answer.verdict, answer.exact)
    assert isinstance(row, Row)
    return _judge_names(row, answer.verdict, answer.exact)


def _judge_polarity(expected: str, verdict: str, exact: Any) -> Judgement:
    """Divided evidence must not be answered; united evidence must not be answered against."""
    said = "mixed" if verdict == "mixed" else exact
    if verdict in ("answered", "mixed") and said == expected:
        return RIGHT
    if verdict == "answered":
        return Judgement("wrong", f"said {exact}, the evidence says {expected}")
    return Judgement("held back", f"{verdict}, the evidence says {expected}")


def _judge_names(row: Row, verdict: str, exact: Any) -> Judgement:
    given = exact if isinstance(exact, list) else []
    if forbidden := find_forbidden(given, row):
        return Judgement("wrong", f"of the wrong type: {'; '.join(forbidden)}")
    if verdict != "answered":
        return Judgement("held back", verdict)
    assert isinstance(row.expected, tuple)
    found = [find_expected(said, row.expected) for said in given]
    if row.type == "factoid":
        is_right = bool(found) and found[0] is not None
    else:
        hits = len({at for at in found if at is not None})
        is_right = 2 * hits / max(1, len(found) + len(row.expected)) >= LIST_F1
    if is_right:
        return RIGHT
    wanted = "; ".join(names[0] for names in row.expected)
    return Judgement("wrong", f"expected {wanted}")
