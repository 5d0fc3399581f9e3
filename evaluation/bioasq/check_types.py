"""Whether an exact answer is of the type that the question's words ask for.

A coarse check by words, which misses more than it finds: only questions whose words name a
number, a gene or protein, a drug or a disease are checked. A number needs a digit or a number
word. A name must hold a letter and a word that is not an everyday one ("gene", "cells",
"treatment"). A name of another class, such as a disease where a gene was asked, passes.
Of 857 gold names that it checks in BioASQ's training and development questions it calls three
wrong, so that what it finds is wrong; it checks a third of factoid and list questions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from serve.answer.names.name_kinds import asked_kind, is_specific

Asked = Literal["number", "name"]

_QUANTITIES = (
    r"age|amount|cost|date|dosage|dose|duration|frequency|half-life|incidence|length|number|"
    r"percentage|prevalence|proportion|rate|ratio|sensitivity|share|size|specificity|year"
)
_NUMBER = re.compile(
    r"\bhow (?:many|much|long|often|old|large|big|small|high|tall|far|frequent(?:ly)?)\b|"
    rf"\b(?:what|which) (?:is|are|was|were) (?:the |an? )?(?:\w+ )?(?:{_QUANTITIES})s?\b|"
    rf"\b(?:what|which|in what|in which) (?:{_QUANTITIES})s?\b|^when (?:was|were|did)\b",
    re.IGNORECASE,
)
_NUMBER_WORD = re.compile(
    r"\d|\b(?:zero|none|once|twice|half|one|two|three|four|five|six|seven|eight|nine|ten|eleven|"
    r"twelve|thirteen|fifteen|twenty|thirty|forty|fifty|sixty|hundreds?|thousands?|millions?|"
    r"dozens?|daily|weekly|monthly|yearly|annually|single|double|triple|lifelong)\b",
    re.IGNORECASE,
)


def asked_type(body: str) -> Asked | None:
    """What kind of answer the question's words ask for; None where they do not tell."""
    if _NUMBER.search(body):
        return "number"
    return "name" if asked_kind(body) in ("gene", "drug", "disease") else None


def wrong_names(asked: Asked, names: Sequence[str]) -> int:
    """How many of the names cannot be of the type."""
    fits = _is_number if asked == "number" else is_specific
    return sum(not fits(name) for name in names)


def _is_number(name: str) -> bool:
    return _NUMBER_WORD.search(name) is not None
