"""What a question compares with, names by a number or asks of all; and whether a sentence does."""

from __future__ import annotations

import re

from serve.support.compare_wording import read_wording

_COMPARED = re.compile(
    r"\b(?:than|compared (?:with|to)|versus|(?:super|infer)ior to|as \w+ as)"
    r"\s+((?:(?!\d|(?:in|for|as|of|at|on|after|before|during|to|when|with|by|from)\b)[\w-]+\s*){1,5})",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:than|more|less|fewer|better|worse\w*|greater|higher|lower|(?:non-?)?inferior\w*|superior\w*"
    r"|similar\w*|equal\w*|equivalent|compar\w+|differ\w*|versus|vs|as \w+ as)\b",
    re.IGNORECASE,
)
# "CD20", "IL-6", "BRCA1/2", "COX-1 and -2"; the letters say what it is one of.
_NUMBERED = re.compile(
    r"(?<![A-Za-z\d])([A-Za-z]*[A-Z][A-Za-z]*)-?(\d\w*(?:(?:/|, -|,? and -|,? or -)\d\w*)*)"
)
_OF_ALL = re.compile(
    r"(?<!at )\b(?:all|every|each|always|never|only|solely|exclusively|invariably|entirely"
    r"|universally)\b(?!-)|\bwithout exception\b|\b100 ?%",
    re.IGNORECASE,
)


def compared_with(body: str) -> frozenset[str]:
    """Stems of what a question compares with: "placebo" of "Is X better than placebo in Y?".

    Empty for a question that compares nothing.
    """
    found = _COMPARED.search(body)
    return frozenset(read_wording(found[1]).words) if found else frozenset()


def speaks_of(sentence: str, compared: frozenset[str]) -> bool:
    """Whether the sentence speaks of what the question compares with; True for nothing."""
    return not compared or bool(compared & read_wording(sentence).words.keys())


def compares(sentence: str, compared: frozenset[str]) -> bool:
    """Whether the sentence compares, where the question does."""
    return not compared or bool(_COMPARES.search(sentence))


def names_another(sentence: str, body: str) -> bool:
    """Whether the sentence names a like of what the question names, and not that: CD38 for CD20."""
    asked, named = _numbered(body), _numbered(sentence)
    return any(
        letters in named and named[letters].isdisjoint(numbers)
        for letters, numbers in asked.items()
    )


def is_of_all(sentence: str, body: str) -> bool:
    """Whether the sentence says something of all, or only of one, where the question asks that."""
    # What stands behind the question is no part of it.
    return not _OF_ALL.search(body.partition("?")[0]) or bool(_OF_ALL.search(sentence))


def _numbered(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for match in _NUMBERED.finditer(text):
        numbers = re.findall(r"\d\w*", match[2].casefold())
        found.setdefault(match[1].casefold(), set()).update(numbers)
    return found
