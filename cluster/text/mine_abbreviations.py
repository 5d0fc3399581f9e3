"""Find abbreviations and their long forms in a text.

A. S. Schwartz and M. A. Hearst, "A simple algorithm for identifying abbreviation
definitions in biomedical text", Pacific Symposium on Biocomputing 8 (2003), 451-462.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_SHORT_CHARS = 10
# Limit of the text read per parenthesis, so that a text full of "(" takes linear time.
_MAX_LONG_CHARS = 300

_PARENTHESIS = re.compile(rf"\(([^()]{{2,{_MAX_LONG_CHARS}}})\)")
_INNER_END = re.compile(r"[,;:](?=\s)|\s(?:and|or|also|formerly|hereafter)\s")
_SENTENCE_END = re.compile(r"[.!?;]\s+(?=[^\sa-z])")
_WORD = re.compile(r"\S+")
_ALNUM = re.compile(r"[^\W_]")
_PLAIN_WORDS = re.compile(r"[\w ]+")
_INITIAL = re.compile(r"(?<![^\W_])[^\W_]+")
_LINKS = frozenset(
    ["a", "an", "and", "as", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"]
)
_EDGES = " \"'\u2018\u2019\u201c\u201d<>*=-\u2013\u2014,;:/\u00ae\u2122"


class AbbreviationPair(NamedTuple):
    """An abbreviation and its long form, in the case of the text; `long` has single spaces."""

    short: str
    long: str


def mine_abbreviations(text: str) -> list[AbbreviationPair]:
    """Return the pairs defined as `long (SHORT)` or `SHORT (long)`, in order of the text.

    Each pair is returned once. Takes time linear in the length of `text`.
    """
    pairs: dict[AbbreviationPair, None] = {}
    for match in _PARENTHESIS.finditer(text):
        before = _sentence_before(text, match.start())
        pair = _pair(before, match[1].strip())
        if pair is not None:
            pairs[pair] = None
    return list(pairs)


def _sentence_before(text: str, end: int) -> str:
    window = text[max(0, end - _MAX_LONG_CHARS) : end]
    start = 0
    for boundary in _SENTENCE_END.finditer(window):
        start = boundary.end()
    return window[start:].rstrip()


def _pair(before: str, inside: str) -> AbbreviationPair | None:
    inner = inside[: m.start()] if (m := _INNER_END.search(inside)) else inside
    inner = inner.strip(_EDGES)
    if not before or not inner:
        return None
    if len(inner.split()) <= 2 and len(inner) <= MAX_SHORT_CHARS:
        return _match(inner, _last_words(before, _max_words(inner)))
    # The paper's second pattern, `SHORT (long)`. Its authors' program also requires a capital.
    short = before.split()[-1].strip(_EDGES)
    if not any(c.isupper() for c in short):
        return None
    return _match(short, inner)


def _match(short: str, candidate: str) -> AbbreviationPair | None:
    if not is_short_form(short):
        return None
    found = _spelt_by_initials(short, candidate) or best_long_form(short, candidate)
    if found is None:
        return None
    long = " ".join(found.strip(_EDGES).split())
    return AbbreviationPair(short, long) if _is_long_form(short, long) else None


def is_short_form(short: str) -> bool:
    """Return whether `short` can be an abbreviation.

    It has at most two words, 2 to 10 characters, a letter and an alphanumeric first character. In
    addition to the paper's rules, plain lower-case words are rejected: in abstracts most of them
    are remarks ("(mean)", "(13 percent)").
    """
    return (
        2 <= len(short) <= MAX_SHORT_CHARS
        and len(short.split()) <= 2
        and short[0].isalnum()
        and any(c.isalpha() for c in short)
        and not (short.islower() and _PLAIN_WORDS.fullmatch(short))
    )


def best_long_form(short: str, candidate: str) -> str | None:
    """Return the shortest suffix of `candidate` that spells `short`, or None (paper, Figure 1).

    Every letter and digit of `short` must match in order, from right to left and ignoring case,
    and its first character must match at the start of a word.
    """
    at = len(candidate)
    for i in range(len(short) - 1, -1, -1):
        if not short[i].isalnum():
            continue
        wanted = short[i].lower()
        at -= 1
        while at >= 0 and not (
            candidate[at].lower() == wanted
            and (i > 0 or at == 0 or not candidate[at - 1].isalnum())
        ):
            at -= 1
        if at < 0:
            return None
    return candidate[candidate.rfind(" ", 0, at + 1) + 1 :]


def _spelt_by_initials(short: str, candidate: str) -> str | None:
    """Return the suffix of `candidate` whose initials spell `short`, or None.

    Tried first because the paper's search also matches letters inside words: for "preterm premature
    rupture of membranes (PPROM)" it matches the p of "rupture" and misses the first word. Link
    words may be skipped.
    """
    wanted = [c.lower() for c in short if c.isalnum()]
    for word in reversed(list(_INITIAL.finditer(candidate))):
        if word[0][0].lower() == wanted[-1]:
            wanted.pop()
        elif word[0].lower() not in _LINKS:
            return None
        if not wanted:
            return candidate[candidate.rfind(" ", 0, word.start()) + 1 :]
    return None


def _is_long_form(short: str, long: str) -> bool:
    words = re.split(r"[\s-]+", long)
    return (
        len(long) > len(short)
        and len(words) <= _max_words(short)
        and not re.search(rf"\b{re.escape(short)}\b", long)
        and words[0].lower() not in _LINKS
        and not long.startswith("(")
        and long.count("(") == long.count(")")
        and long.count("[") == long.count("]")
    )


def _max_words(short: str) -> int:
    size = len(_ALNUM.findall(short))
    return min(size + 5, size * 2)


def _last_words(text: str, count: int) -> str:
    starts = [m.start() for m in _WORD.finditer(text)]
    return text[starts[-count] :] if len(starts) > count > 0 else text
