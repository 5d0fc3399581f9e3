"""The order in which PubMed's files apply: that of the numbers in their names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cluster.errors import InputError

# As NLM names its files: pubmed26n0001.xml.gz is of the baseline of 2026 and its updates.
_NLM_NAME = re.compile(r"pubmed(\d\d)n\d{4}")


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Sorts names by the numbers in them, so that n0010 follows n0009 and n10 follows n9."""
    parts = re.split(r"(\d+)", name)
    return tuple((int(p), "") if p.isdigit() else (-1, p) for p in parts)


def check_one_baseline(names: Iterable[str]) -> None:
    """Raise InputError for files of two years, told by NLM's names; other names are free.

    Each year's baseline replaces all files before it, and their numbers begin anew.
    """
    first: dict[str, str] = {}
    for name in names:
        if match := _NLM_NAME.match(name):
            first.setdefault(match[1], name)
    if len(first) > 1:
        old, new = min(first), max(first)
        raise InputError(
            f"{first[new]} and {first[old]} are of two years' baselines, and each replaces all "
            f"before it; build an index from the files of 20{new} alone"
        )
