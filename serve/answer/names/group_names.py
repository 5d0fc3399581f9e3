"""Names in an answer: those of one thing in one group, each once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set

from cluster.answers import Evidence
from cluster.records import Entity
from cluster.text.mine_abbreviations import AbbreviationPair, mine_abbreviations
from serve.answer.names.cluster_mentions import cluster_mentions, spelling, usual_first
from serve.answer.names.name_kinds import asked_words, repeats

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
    """The names in their order, but those of one thing in one group, as the evidence has it.

    A group also has what the evidence defines to be the short or the long form of its names.
    """
    entities = [_as_entity(name, recognise) for name in names]
    defined = list(definitions(evidence))
    groups: dict[int, list[str]] = defaultdict(list)
    for number, name in zip(cluster_mentions(entities, defined), names, strict=True):
        groups[number].append(name)
    return [[*group, *_other_forms(group, defined)] for group in groups.values()]


def _other_forms(names: Sequence[str], defined: Sequence[AbbreviationPair]) -> list[str]:
    spelt = {spelling(name) for name in names}
    longs = [pair.long for pair in defined if spelling(pair.short) in spelt]
    shorts = [pair.short for pair in defined if spelling(pair.long) in spelt]
    return [form for form in usual_first([*longs, *shorts]) if spelling(form) not in spelt]


def apart(groups: Sequence[Sequence[str]], body: str) -> list[list[str]]:
    """Each name as a guess of its own, as BioASQ's measures count the first of a group alone.

    After each its other boundaries, without what the question `body` says itself: "mTOR" of "mTOR
    inhibitor" where it asks what a drug inhibits. Some gold answers have these words, some not.
    """
    asked = asked_words(body)
    return [[form] for names in groups for name in names for form in _boundaries(name, asked)]


def _boundaries(name: str, asked: Set[str]) -> Iterator[str]:
    """`name`, then without the words at its ends that are `asked`, if others are left."""
    yield name
    words = name.split()
    new = [n for n, word in enumerate(words) if not _is_asked(word, asked)]
    if new and len(inner := words[new[0] : new[-1] + 1]) < len(words):
        yield " ".join(inner)


def _is_asked(word: str, asked: Set[str]) -> bool:
    """Whether the question has the word, or the verb that it comes from."""
    verb = any(len(a) > 4 and word.casefold().startswith(a) for a in asked)
    return verb or repeats(word, asked)


def _as_entity(name: str, recognise: Recogniser) -> Entity:
    whole = (entity for entity in recognise(name) if entity.text == name)
    return next(whole, Entity(name, 0, len(name), "", "name"))


def name_concepts(entities: Sequence[Entity]) -> list[str]:
    """Each concept once with the names that it has here: `MI = heart attack (D009203)`.

    In the order of their first names; a name without a concept stands for itself.
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
    """The names in their order, each once whatever its case."""
    kept: dict[str, str] = {}
    for name in names:
        kept.setdefault(name.casefold(), name)
    return list(kept.values())
