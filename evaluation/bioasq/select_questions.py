"""Select questions of a BioASQ file by keyword and type, and sample them (paper 002, 3.1)."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.read_given import read_given

Row = dict[str, Any]


def read_keywords(path: Path) -> list[str]:
    """Return the keywords in `path`, one per line; raise InputError if there are none."""
    words = [" ".join(line.split()) for line in read_given(path).splitlines()]
    found = [word for word in words if word]
    if not found:
        raise InputError(f"{path}: contains no keyword; write one per line")
    return found


def select_questions(
    rows: Sequence[Any],
    *,
    types: Collection[str] = (),
    keywords: Sequence[str] = (),
    sample: int = 0,
    seed: int = 0,
) -> list[Row]:
    """Return the rows of these types whose `body` has a keyword, in order.

    A keyword matches whole words, ignoring case; empty `types` and `keywords` match everything. If
    `sample` is above 0, that many rows are drawn, reproducibly for the same `seed` and rows. Raises
    InputError if fewer rows are left.
    """
    pattern = re.compile(
        "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in keywords), re.IGNORECASE
    )
    kept = [
        row
        for row in rows
        if isinstance(row, dict)
        and (not types or row.get("type") in types)
        and (not keywords or pattern.search(str(row.get("body", ""))))
    ]
    if len(kept) < max(sample, 1):
        raise InputError(
            f"{len(kept)} of {len(rows)} questions are of those types and have a keyword; "
            f"{'ask for a smaller --sample or ' if kept else ''}give other keywords or types"
        )
    if not sample:
        return kept
    drawn = sorted(random.Random(seed).sample(range(len(kept)), sample))
    return [kept[position] for position in drawn]
