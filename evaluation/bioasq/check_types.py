"""Check that an exact answer is a number if the question asks for one.

Only questions whose words name a quantity are checked; a number needs a digit or a number word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Asked = Literal["number"]

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
    """Return the kind of answer that the question asks for; None if its words do not show it."""
    return "number" if _NUMBER.search(body) else None


def count_non_numbers(names: Sequence[str]) -> int:
    """Return how many of the names are not numbers."""
    return sum(_NUMBER_WORD.search(name) is None for name in names)
