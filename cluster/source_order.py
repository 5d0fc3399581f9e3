"""The order in which PubMed's files apply: that of the numbers in their names."""

from __future__ import annotations

import re


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Sorts names by the numbers in them, so that n0010 follows n0009 and n10 follows n9."""
    parts = re.split(r"(\d+)", name)
    return tuple((int(p), "") if p.isdigit() else (-1, p) for p in parts)
