"""Names in an answer: those of one thing in one group, each once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from cluster.mine_abbreviations import AbbreviationPair, mine_abbreviations
from cluster.records import Entity, Evidence
from serve.cluster_mentions import cluster_mentions

Recogniser = Callable[[str], list[Entity]]

# How many answers each type has at most, and how long one may be (BioASQ).
LIMITS = {"factoid": 5, "list": 100}
MAX_CHARS = 100


def definitions(evidence: Sequence[Evidence]) -> Iterator[AbbreviationPair]:
    """The short and long forms that the passages define."""
    for item in evidence:
        yield from mine_abbreviations(item.passage.text)


def group_names(
    names: Sequence[str], evidence: Sequence[Evidence], recognise: Recogniser
) -> list[list[str]]:
    """The names in their order, but those of one thing in one group, as the evidence has it."""
    entities = [_as_entity(name, recognise) for name in names]
    groups: dict[int, list[str]] = defaultdict(list)
    for number, name in zip(cluster_mentions(entities, definitions(evidence)), names, strict=True):
        groups[number].append(name)
    return list(groups.values())


def _as_entity(name: str, recognise: Recogniser) -> Entity:
    whole = (entity for entity in recognise(name) if entity.text == name)
    return next(whole, Entity(name, 0, len(name), "", "name"))


def distinct(names: Sequence[str]) -> list[str]:
    """The names in their order, each once whatever its case."""
    kept: dict[str, str] = {}
    for name in names:
        kept.setdefault(name.casefold(), name)
    return list(kept.values())
