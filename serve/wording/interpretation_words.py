"""Describe in plain words how a question was interpreted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cluster.answers import SearchResult

_NAMES = {"all_of": "every value of"}


def understood_words(understood: Mapping[str, Any] | None, did_you_mean: str | None) -> list[str]:
    """Return lines on how the question was interpreted; [] if it was searched as typed."""
    said = []
    if understood:
        said.append(f"Searched for: {understood['question']}")
        if filters := _filter_words(understood["filters"]):
            said.append(f"Filters: {filters}")
        said += [f"{note[:1].upper()}{note[1:]}." for note in understood["notes"]]
    if did_you_mean and not (understood and understood["question"] == did_you_mean):
        said.append(f"Did you mean: {did_you_mean}")
    return said


def result_words(found: SearchResult) -> list[str]:
    """Return the lines of `understood_words` for a search result."""
    understood = asdict(found.understood) if found.understood else None
    return understood_words(understood, found.did_you_mean)


def _filter_words(filters: Mapping[str, Any] | None) -> str:
    parts = []
    for name, value in (filters or {}).items():
        if value not in (None, (), []):
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            parts.append(f"{_NAMES.get(name, name.replace('_', ' '))} {text}")
    return "; ".join(parts)
