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
# Maximum number of extra words around an expected name ("CFTR gene"), by the length of the name.
EXTRA_WORDS = 3
EXTRA_PHRASE_WORDS = 12
PHRASE_WORDS = 2
# Minimum F1 for a list to count as right.
LIST_F1 = 0.5
_GREEK = str.maketrans(
    {"\u03b1": "alpha", "\u03b2": "beta", "\u03b3": "gamma", "\u03b4": "delta", "\u03bc": "u"}
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Result: `wrong` if the evidence does not allow the answer, `held back` if none was stated."""

    outcome: Outcome
    reason: str = ""


RIGHT = Judgement("right")


def words(text: str) -> tuple[str, ...]:
    """Return the normalised words and numbers of `text`, for comparing names."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_GREEK)
    return tuple(re.findall(r"\d+(?:\.\d+)?|[^\W\d_]+|%", plain))


def holds(text: str, name: str) -> bool:
    """Return whether the words of `name` occur consecutively in `text`."""
    whole, part = words(text), words(name)
    width = len(part)
    return any(whole[at : at + width] == part for at in range(len(whole) - width + 1))


def same_thing(said: str, name: str) -> bool:
    """Return whether `said` is `name` with at most a few extra words."""
    extra = EXTRA_PHRASE_WORDS if len(words(name)) > PHRASE_WORDS else EXTRA_WORDS
    return holds(said, name) and len(words(said)) - len(words(name)) <= extra


def find_expected(said: Sequence[str], expected: Sequence[Sequence[str]]) -> int | None:
    """Return the index of the first expected item that `said` names by any synonym, or None."""
    for at, names in enumerate(expected):
        if any(same_thing(one, name) for one in said for name in names):
            return at
    return None


def find_forbidden(exact: Sequence[Sequence[str]], row: Row) -> list[str]:
    """Return the answers that contain a name of the wrong type."""
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
    """Compare an answer with the expectation of its row."""
    if row.expected is None:
        if answer.verdict == "not_enough_evidence":
            return RIGHT
        return Judgement("wrong", f"{answer.verdict}, but the collection has no answer")
    if isinstance(row.expected, str):
        return _judge_polarity(row.expected, answer.verdict, answer.exact)
    assert isinstance(row, Row)
    return _judge_names(row, answer.verdict, answer.exact)


def _judge_polarity(expected: str, verdict: str, exact: Any) -> Judgement:
    """Judge a yes/no answer: `wrong` only if a stated answer differs from `expected`."""
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
