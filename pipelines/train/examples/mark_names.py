"""Find the names of a gold answer in a passage; the reader learns to mark them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_SHORT_FORM = re.compile(r"([^()]+)\(([^()]{2,20})\)\.?")
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Marked:
    """A span of a passage, in code points, end exclusive."""

    begin: int
    end: int


def find_names(text: str, groups: Sequence[Sequence[str]]) -> list[Marked]:
    """Return non-overlapping occurrences of the names as whole words; longer names win."""
    forms = {form for group in groups for name in group for form in _forms(name)}
    found: list[Marked] = []
    for form in sorted(forms, key=lambda form: (-len(form), form)):
        pattern = rf"(?<![^\W_]){re.escape(form)}(?:s|es)?(?![^\W_])"
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if not any(match.start() < m.end and m.begin < match.end() for m in found):
                found.append(Marked(match.start(), match.end()))
    return sorted(found, key=lambda mark: mark.begin)


def _forms(name: str) -> Iterator[str]:
    """Yield forms of the name: without article, full stop, or short form in brackets."""
    plain = _ARTICLE.sub("", name.strip().rstrip("."), count=1)
    both = _SHORT_FORM.fullmatch(plain)
    for form in (plain, *(map(str.strip, both.groups()) if both else ())):
        if len(form) >= 2:
            yield form
            yield form.replace("-", " ")
