"""Normalise an exact answer without changing its meaning: form, limits, duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from serve.answer.names.group_names import distinct
from serve.support.compare_wording import VERDICT
from serve.support.find_references import holds_reference

_AROUND = ' ,;:"\u201c\u201d'


def opening_verdict(sentence: str) -> Literal["yes", "no"] | None:
    """Return the yes or no that opens the sentence ("No, it does not."), if any."""
    found = VERDICT.match(sentence)
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


def names_in(names: Iterable[str], sources: Sequence[str]) -> list[str]:
    """Return the names that occur in `sources` as whole words, ignoring case, in order.

    Links and other references are left out, as are names without a letter or digit.
    """
    text = " ".join(" ".join(sources).split()).casefold()
    return [
        name
        for name in map(trim_name, names)
        if re.search(r"\w", name)
        and re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", text)
        and not holds_reference(name)
    ]


def trim_name(name: str) -> str:
    """Return `name` without surrounding space, quotes and stops; keeps ".05"."""
    return " ".join(name.split()).lstrip(_AROUND).rstrip(f"{_AROUND}.")
