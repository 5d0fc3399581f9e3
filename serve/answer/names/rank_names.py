"""Names of the asked type in the evidence, ranked: exact answers to factoid and list questions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cluster.answers import Evidence
from cluster.records import Entity
from serve.answer.names.cluster_mentions import cluster_mentions, usual_first
from serve.answer.names.group_names import MAX_CHARS, Recogniser, definitions
from serve.answer.names.name_kinds import (
    Kind,
    asked_kind,
    asked_words,
    fits,
    looks_like,
    named_part,
    repeats,
    stands_beside,
)
from serve.answer.read_evidence import ReadPassage
from serve.support.compare_wording import read_wording

Span = tuple[int, int]
_LEADS = re.compile(
    r"(?:the|an?|of|in|on|by|with|as|to|or|and|for|from|than|using|via|both|called|named"
    r"|is|are|was|were|be|being) ",
    re.IGNORECASE,
)
# Other words for what a question on antibodies asks about.
_ANTIBODIES = r"(?:antibod(?:y|ies)|Ig[ADEGM]\d?|immunoglobulins?)"
_ANTIBODY = re.compile(rf"\b{_ANTIBODIES}\b", re.IGNORECASE)
_AGAINST = re.compile(rf" (?:auto)?{_ANTIBODIES}$", re.IGNORECASE)
_TRAILS = re.compile(
    r" (?:is|are|was|were|has|have|can|may|the|an?|of|in|on|by|with|as|to|or|and|for|from|than"
    r"|using|caused|that|which|cases|patients|subjects|individuals)$",
    re.IGNORECASE,
)
# Numbers alone are the answers of questions for a quantity (serve.answer.names.find_quantities).
_LETTERS = re.compile(r"[^\W\d_]{2}|[^\W\d_]\d")
# How much less a passage says with each rank: the same name in the best passage counts more.
RANK_LOSS = 0.2


@dataclass(frozen=True, slots=True)
class RankedName:
    """Synonyms of one thing, the most usual first, and how sure it is part of the answer."""

    names: tuple[str, ...]
    score: float


def rank_names(
    body: str, passages: Sequence[ReadPassage], recognise: Recogniser
) -> list[RankedName]:
    """What the passages name in answer to `body`, best first.

    Left out are what it names itself, and what cannot be of the kind that it asks for.

    A name scores by each passage that it is in: the reader's probability, its sentence's, the
    passage's relevance, less by rank. Mentions of one thing count together.
    """
    asked = asked_words(body)
    kind = asked_kind(body)
    mentions = list(_mentions(body, passages, recognise, kind, asked))
    numbers = cluster_mentions([m.entity for m in mentions], definitions(_items(passages)))
    names: dict[int, list[str]] = defaultdict(list)
    best: dict[tuple[int, int], float] = defaultdict(float)
    for number, mention in zip(numbers, mentions, strict=True):
        names[number].append(mention.entity.text)
        best[number, mention.rank] = max(best[number, mention.rank], mention.score)
    scores: dict[int, float] = defaultdict(float)
    for (number, _), score in best.items():
        scores[number] += score
    ranked = sorted(scores.items(), key=lambda entry: -entry[1])
    return [
        RankedName(tuple(usual_first(names[number])), score)
        for number, score in ranked
        if not any(_asked_about(name, body, asked) for name in names[number])
        and any(fits(kind, name) for name in names[number])
    ]


@dataclass(frozen=True, slots=True)
class _Mention:
    entity: Entity
    rank: int
    score: float


def _mentions(
    body: str,
    passages: Sequence[ReadPassage],
    recognise: Recogniser,
    kind: Kind | None,
    asked: frozenset[str],
) -> Iterator[_Mention]:
    of_antibodies = _ANTIBODY.search(body)
    # A syndrome is listed with its own signs, and a drug with other drugs.
    of_treatment = kind == "effect" and looks_like(body) != "disease"
    for passage in passages:
        text = passage.text
        concepts = {(e.begin, e.end): e for e in recognise(text)} if passage.reading.names else {}
        for span in passage.reading.names:
            name, begin, end = trimmed(text, span.begin, span.end)
            if of_antibodies and (against := _AGAINST.search(name)):
                # What "aquaporin-4 antibodies" are against.
                end = begin + against.start()
                name = text[begin:end]
            begin, end = _whole(text, (begin, end), concepts, asked)
            name = text[begin:end]
            if kind and (part := named_part(kind, name)):
                begin = end - len(part)
                name = part
            if not 1 < len(name) <= MAX_CHARS or not _LETTERS.search(name):
                continue
            if of_treatment and stands_beside(text, begin, end, asked):
                continue
            known = concepts.get((begin, end))
            entity = known or Entity(name, begin, end, "", "name")
            weight = passage.reading.relevance / (1 + RANK_LOSS * passage.rank)
            weight *= passage.sentence_score(begin)
            yield _Mention(entity, passage.rank, span.score * weight)


def _whole(text: str, span: Span, concepts: Collection[Span], asked: frozenset[str]) -> Span:
    """The shortest of the vocabulary's names that hold the span; a part names another thing.

    What the question has already is not added: "vitamin B12" of "vitamin B12 deficiency".
    """
    begin, end = span
    around = [c for c in concepts if c[0] <= begin and end <= c[1]]
    for first, last in sorted(around, key=lambda c: c[1] - c[0]):
        added = read_wording(f"{text[first:begin]} {text[end:last]}").words
        if not asked & added.keys():
            return first, last
    return span


def trimmed(text: str, begin: int, end: int) -> tuple[str, int, int]:
    """The span without what leads to a name, or a bracket that is closed outside of it."""
    while lead := _LEADS.match(text, begin, end):
        begin = lead.end()
    name = text[begin:end]
    if name.count("(") > name.count(")"):
        closes = text[end : end + 1] == ")"
        end = end + 1 if closes else begin + name.rindex("(")
    while end > begin and text[end - 1].isspace():
        end -= 1
    while trail := _TRAILS.search(text[begin:end]):
        end = begin + trail.start()
    return text[begin:end], begin, end


def _items(passages: Sequence[ReadPassage]) -> list[Evidence]:
    return [passage.item for passage in passages]


def _asked_about(name: str, body: str, asked: frozenset[str]) -> bool:
    both = _ANTIBODY.search(body) and _ANTIBODY.fullmatch(name)
    return bool(both) or repeats(name, asked)
