"""Reject filter values that no article has, and explain filters that match no article.

If a shard does not answer, no value is rejected and nothing is explained, because that shard may
have matching articles. The search continues without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from cluster.errors import InputError, cut
from cluster.index.boolean.expressions import Expression, terms_of
from cluster.index.filters.filters import Filters, fold
from cluster.index.filters.inspect_filters import (
    CHECKED,
    MOST_NEAR,
    FilterFacts,
    FilterInquiry,
    Values,
    closest_values,
    either,
)
from serve.contracts.backend import shard_stage
from serve.contracts.stage_calls import StageCalls
from serve.question.field_tags.field_names import LANGUAGES, PUBLICATION_TYPES
from serve.search.shard_stage import INSPECT_FILTERS

# Maximum number of unknown values named per field, because finding the closest ones takes time.
MOST_REFUSED = 3
# Values in PubMed, for presets that also search PubMed.
_PUBMED = {
    "languages": set(LANGUAGES.values()),
    "publication_types": set(map(fold, PUBLICATION_TYPES)),
}


async def check_filters(filters: Filters, stages: StageCalls, *, online: bool) -> Filters:
    """Return the filters with language names as codes.

    If PubMed is searched too (`online`), its languages and publication types are also accepted, and
    journals and headings are not checked. Raises InputError that names each value that is in no
    shard, and the closest values that are in the index.
    """
    if filters.languages:
        codes = tuple(LANGUAGES.get(value, value) for value in filters.languages)
        filters = replace(filters, languages=codes)
    given = {name: values for name in CHECKED if (values := getattr(filters, name))}
    if online:
        given = {
            name: others
            for name, known in _PUBMED.items()
            if (others := [value for value in given.get(name, ()) if value not in known])
        }
    await _reject_unknown(given, stages, "filters.{}")
    return filters


async def check_journals(expression: Expression, stages: StageCalls) -> None:
    """Raise InputError for the journals of a Boolean query that no shard has."""
    named = {fold(term.value): None for term in terms_of(expression) if term.field == "ta"}
    await _reject_unknown({"journals": list(named)} if named else {}, stages, "query, [ta]")


async def _reject_unknown(given: Values, stages: StageCalls, where: str) -> None:
    """Raise InputError, which begins with `where`, for values that no shard has."""
    if not given:
        return
    replies = await _ask(FilterInquiry(values=given), stages)
    unknown = _unknown_everywhere(replies)
    if unknown:
        # MeSH descriptors with similar UIs are unrelated, so no closest values are suggested.
        asked = {name: values[:MOST_REFUSED] for name, values in unknown.items() if name != "mesh"}
        near = await _ask(FilterInquiry(near=asked), stages)
        raise InputError("; ".join(_refusals(unknown, near, where)))


async def explain_no_match(filters: Filters, stages: StageCalls) -> str:
    """Return how many articles each filter excludes if no article passes all; otherwise ""."""
    names = [
        f.name
        for f in fields(Filters)
        if f.name != "all_of" and getattr(filters, f.name) != f.default
    ]
    if not names:
        return ""
    asked = [filters, *(_without(filters, [name]) for name in names)]
    asked += [_without(filters, [n for n in names if n != name]) for name in names]
    replies = await _ask(FilterInquiry(count=tuple(asked)), stages)
    if not replies:
        return ""
    total, *counts = (
        sum(of_shards) for of_shards in zip(*(r.counts for r in replies), strict=True)
    )
    if total:
        return ""
    without, alone = counts[: len(names)], counts[len(names) :]
    said = "No article in this index passes the filters."
    if len(names) == 1 or any(without):
        listed, how = without, "without {}: {:,}"
    else:
        listed, how = alone, "with {} alone: {:,}"
    parts = (how.format(_said(filters, n), c) for n, c in zip(names, listed, strict=True))
    return f"{said} Articles {'; '.join(parts)}."


def _without(filters: Filters, names: Sequence[str]) -> Filters:
    defaults: dict[str, Any] = {f.name: f.default for f in fields(Filters) if f.name in names}
    return replace(filters, **defaults, all_of=tuple(n for n in filters.all_of if n not in names))


def _said(filters: Filters, name: str) -> str:
    value = getattr(filters, name)
    if isinstance(value, tuple):
        shown = (" and " if name in filters.all_of else " or ").join(value)
    else:
        shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{name} ({cut(shown)})"


async def _ask(asked: FilterInquiry, stages: StageCalls) -> list[FilterFacts]:
    """Return the replies of all shards; empty unless every shard answers."""
    replies = await asyncio.gather(
        *(
            stages.call(INSPECT_FILTERS.at(shard_stage(number)), asked)
            for number in range(stages.facts.shards)
        )
    )
    found = [reply for reply in replies if reply is not None]
    return found if len(found) == len(replies) else []


def _unknown_everywhere(replies: Sequence[FilterFacts]) -> Values:
    if not replies:
        return {}
    first, *others = (reply.unknown for reply in replies)
    unknown = {
        name: [v for v in values if all(v in other.get(name, ()) for other in others)]
        for name, values in first.items()
    }
    return {name: values for name, values in unknown.items() if values}


def _refusals(unknown: Values, near: Sequence[FilterFacts], where: str) -> list[str]:
    said = []
    for name, values in unknown.items():
        place = where.format(name)
        for value in values[:MOST_REFUSED]:
            held = sorted({v for facts in near for v in facts.near.get(name, {}).get(value, ())})
            close = closest_values(value, held) or tuple(held[:MOST_NEAR])
            mend = f"did you mean {either(close)}?" if close else "check it, or leave it out"
            said.append(f"{place}: no article in this index has {cut(value)!r}; {mend}")
        if len(values) > MOST_REFUSED:
            said.append(f"{place}: nor {len(values) - MOST_REFUSED:,} other values")
    return said
