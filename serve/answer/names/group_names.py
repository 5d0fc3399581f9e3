"""Group the names in an answer: synonyms in one group, each name once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from cluster.answers import Evidence
from cluster.records import Entity
from cluster.text.mine_abbreviations import AbbreviationPair, mine_abbreviations
from serve.answer.names.cluster_names import Recognise, cluster_names, spelling

# Maximum number of answers by type, and maximum length of an answer in characters (BioASQ).
LIMITS = {"factoid": 5, "list": 100}
MAX_CHARS = 100


def definitions(evidence: Sequence[Evidence]) -> Iterator[AbbreviationPair]:
    """Yield the abbreviations that the passages define, as pairs of short and long form."""
    for item in evidence:
        yield from mine_abbreviations(item.passage.text)


def group_names(
    names: Sequence[str], evidence: Sequence[Evidence], recognise: Recognise
) -> list[list[str]]:
    """Return the names in order, with names that the evidence links to one concept grouped.

    A group also has the short and long forms that the evidence defines for its names.
    """
    defined = list(definitions(evidence))
    groups: dict[int, list[str]] = defaultdict(list)
    for number, name in zip(cluster_names(names, defined, recognise), names, strict=True):
        groups[number].append(name)
    return [[*group, *_other_forms(group, defined)] for group in groups.values()]


def _other_forms(names: Sequence[str], defined: Sequence[AbbreviationPair]) -> list[str]:
    spelt = {spelling(name) for name in names}
    longs = [pair.long for pair in defined if spelling(pair.short) in spelt]
    shorts = [pair.short for pair in defined if spelling(pair.long) in spelt]
    return [form for form in usual_first([*longs, *shorts]) if spelling(form) not in spelt]


def apart(groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return each name as a separate guess: BioASQ's measures count the first of a group."""
    return [[name] for names in groups for name in names]


def name_concepts(entities: Sequence[Entity]) -> list[str]:
    """Return each concept once, with its names in the text: `MI = heart attack (D009203)`.

    Concepts are in the order of their first mention; a name without a concept is listed alone.
    """
    names: dict[str, list[str]] = defaultdict(list)
    for entity in entities:
        names[entity.concept or entity.text.casefold()].append(entity.text)
    linked = {entity.concept for entity in entities if entity.concept}
    return [
        f"{' = '.join(distinct(found))} ({key})" if key in linked else found[0]
        for key, found in names.items()
    ]


def distinct(names: Sequence[str]) -> list[str]:
    """Return the distinct names, ignoring case, in order."""
    kept: dict[str, str] = {}
    for name in names:
        kept.setdefault(name.casefold(), name)
    return list(kept.values())


def usual_first(names: Sequence[str]) -> list[str]:
    """Return the distinct names, ignoring case, the most frequent first; ties keep their order."""
    counts = Counter(name.casefold() for name in names)
    return sorted(distinct(names), key=lambda name: -counts[name.casefold()])
