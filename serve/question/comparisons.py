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
_NUMBERED = re.compile(r"(?<![A-Za-z\d])([A-Za-z]+)-?(\d\w*(?:(?:/|, -|,? and -|,? or -)\d\w*)*)")
# A code of letters and a number, whatever it names: "CTLA-4", "PD-L1", "CD20".
_CODE = re.compile(r"(?<![A-Za-z\d])[A-Z][A-Za-z]{0,5}(?:-[A-Z]?\d+|\d+)[A-Za-z]?(?![A-Za-z\d])")
_SUBJECT = re.compile(
    r"\W*(?:is|are|was|were|do|does|did|can|could|has|have)\s+(?:(?:the|an?)\s+)?"
    r"(?:(?:early|prolonged|long-term|short-term|daily|regular|routine|chronic|repeated|continuous"
    r"|additional|prophylactic)\s+)?"
    r"(?:[\w-]*(?:ions?|ments?|ures?|ency|ance|use|loss|levels?)\s+(?:of|to|in)\s+(?:the\s+)?)?"
    r"([\w-]{4,})",
    re.IGNORECASE,
)
# Codes of drugs have so many digits, those of genes and receptors hardly ever.
ALIAS_DIGITS = 3
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


def subject_of(body: str) -> str:
    """What a yes/no question is about: X of "Is X safe?" and "Is loss of X safe?"; "" for none."""
    found = _SUBJECT.match(body)
    return found[1] if found else ""


def is_nearer_another(sentence: str, body: str) -> bool:
    """Whether the question's subject stands nearer to another code than to the one asked about.

    "Ipilimumab (anti-CTLA-4) is older than those targeting PD-1" does not say that it targets PD-1.
    """
    subject = subject_of(body)
    asked = {_plain(code[0]) for code in _CODE.finditer(body)}
    if not subject or not asked:
        return False
    places = [m.span() for m in re.finditer(re.escape(subject), sentence, re.IGNORECASE)]
    gaps = [
        (sentence[min(end, code.end()) : max(begin, code.start())], code[0])
        for code in _CODE.finditer(sentence)
        for begin, end in places
        if code.end() <= begin or end <= code.start()
    ]
    nearest = min(
        # What stands behind a semicolon is said of another.
        (
            (";" in gap, len(gap), _plain(code) not in asked)
            for gap, code in gaps
            if not _is_alias(code, gap)
        ),
        default=(False, 0, False),
    )
    return nearest[-1]


def _is_alias(code: str, between: str) -> bool:
    """Whether a code is the subject's own: "curevit (AG-120)", "AG-120 (curevit)"."""
    return between == " (" and sum(c.isdigit() for c in code) >= ALIAS_DIGITS


def _plain(code: str) -> str:
    return code.replace("-", "").casefold()


def is_of_all(sentence: str, body: str) -> bool:
    """Whether the sentence says something of all, or only of one, where the question asks that."""
    # What stands behind the question is no part of it.
    return not _OF_ALL.search(body.partition("?")[0]) or bool(_OF_ALL.search(sentence))


def _numbered(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for match in _NUMBERED.finditer(text):
        if match[1].islower():
            continue
        numbers = re.findall(r"\d\w*", match[2].casefold())
        found.setdefault(match[1].casefold(), set()).update(numbers)
    return found
