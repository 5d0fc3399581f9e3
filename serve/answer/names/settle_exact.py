"""Normalise an exact answer without changing its meaning: form, limits, duplicates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from serve.answer.names.group_names import distinct
from serve.support.compare_wording import numbers_agree, read_wording

_PAIRS = (("'", "'"), ("\u2018", "\u2019"))
_OPENING = re.compile(r"\W*(yes|no)\s*[,.:;]", re.IGNORECASE)
_LEADS = re.compile(r"^(?:[\s,;:\"\u201c\u201d]|\.(?!\d))+")
_TRAILS = ' ,;:."\u201c\u201d'


def opening_verdict(sentence: str) -> Literal["yes", "no"] | None:
    """Return the yes or no that opens the sentence ("No, it does not."), if any."""
    found = _OPENING.match(sentence)
    if found is None:
        return None
    return "yes" if found[1].casefold() == "yes" else "no"


def settle_names(groups: Sequence[Sequence[str]], *, limit: int, max_chars: int) -> list[list[str]]:
    """Return the groups of synonyms in order, without names repeated in a later group.

    Names longer than `max_chars` characters are left out, and so is a group whose first name is
    in an earlier group.
    """
    kept: list[list[str]] = []
    seen: set[str] = set()
    for group in groups:
        names = [name for name in map(trim_name, group) if 0 < len(name) <= max_chars]
        fitting = distinct([name for name in names if re.search(r"\w", name)])
        if not fitting or fitting[0].casefold() in seen:
            continue
        kept.append([name for name in fitting if name.casefold() not in seen])
        seen.update(name.casefold() for name in fitting)
    return kept[:limit]


def trim_name(name: str) -> str:
    """Return `name` without surrounding space, quotes and stops; keeps ".05" and "5'"."""
    before = ""
    while name != before:
        before = name
        name = _LEADS.sub("", " ".join(name.split())).rstrip(_TRAILS)
        for left, right in _PAIRS:
            if len(name) > 1 and name.startswith(left) and name.endswith(right):
                name = name[1:-1]
    return name


def keeps_numbers(sentence: str, premises: Sequence[str]) -> bool:
    """Return whether one of the `premises` has all numbers of `sentence`, with their units.

    Paper 000 (section 5.1.4) reports an answer of 14% where the passages had 24%.
    """
    said = read_wording(sentence)
    return not said.numbers or any(numbers_agree(said, read_wording(text)) for text in premises)
