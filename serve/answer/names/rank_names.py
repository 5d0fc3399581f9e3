"""Names of the asked type in the evidence, ranked: exact answers to factoid and list questions."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cluster.answers import Evidence
from cluster.records import Entity
from cluster.text.mine_abbreviations import AbbreviationPair
from serve.answer.names.cluster_mentions import cluster_mentions, spelling, usual_first
from serve.answer.names.group_names import MAX_CHARS, Recogniser, definitions
from serve.answer.names.name_kinds import (
    Kind,
    asked_kind,
    asked_nouns,
    asked_words,
    asks_for_genes,
    bears,
    fit_together,
    is_for_another,
    is_scale,
    looks_like,
    named_part,
    repeats,
    stands_beside,
)
from serve.answer.names.name_shapes import is_symbol
from serve.answer.read_evidence import ReadPassage
from serve.answer.section_labels import bare_label
from serve.question.asked_aspect import OFF_ASPECT, asked_aspect
from serve.support.compare_wording import read_wording
from serve.support.read_denial import denies_name

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
# Written like symbols, and in no gene's name.
_NO_GENE = re.compile(r"\b(?:\w{0,2}[DR]NAs?|\d+-?fold\w*)\b")
# What stands between two members of a list; a short form may follow the first.
_LISTED = re.compile(r"(?: \([^()]{1,40}\))?(?:, | and |, and )")
_FOR_A_NAME = re.compile(
    r"\b(?:names?|named|called|known as|terms?|synonyms?|abbreviations?|acronyms?|brand"
    r"|stands? for)\b"
    r"|^\W*what (?:is|are) \S+$",
    re.IGNORECASE,
)
# Numbers alone are the answers of questions for a quantity (serve.answer.names.find_values).
_LETTERS = re.compile(r"[^\W\d_]{2}|[^\W\d_]\d")
# What a name counts that bears the noun that is asked for: "GAA repeat". Of questions of our own
# on whole abstracts 17 of 35 first names are right with it, and 15 without; of 420 train questions,
# known to the reader, MRR and F1 stay within 0.001; of 70 others MRR falls by 0.007.
BEARS = 2.0
# How much less a passage says with each rank: the same name in the best passage counts more.
RANK_LOSS = 0.2


@dataclass(frozen=True, slots=True)
class RankedName:
    """Synonyms of one thing, the most usual first, and how sure it is part of the answer.

    `share` is how much of the question's words a passage holds that names it, 0 to 1.
    """

    names: tuple[str, ...]
    score: float
    share: float = 1.0


def rank_names(
    body: str, passages: Sequence[ReadPassage], recognise: Recogniser
) -> list[RankedName]:
    """What the passages name in answer to `body`, best first.

    Left out are what it names itself, what cannot be of the kind that it asks for, and what a
    sentence denies ("aspirin does not"), unless another affirms it.

    A name scores by each passage that it is in: the reader's probability, its sentence's, the
    passage's relevance, less by rank. Mentions of one thing count together.
    """
    asked = asked_words(body)
    kind = asked_kind(body)
    of_genes = kind == "gene" and asks_for_genes(body)
    defined = list(definitions(_items(passages)))
    longs = frozenset(pair.long for pair in defined)
    mentions = list(_mentions(body, passages, recognise, kind, asked, longs))
    known_forms = _forms_of_asked(body, defined, asked)
    mentions = [m for m in mentions if spelling(m.entity.text) not in known_forms]
    if kind == "effect":
        mentions = [m for m in mentions if not _is_code(m.entity, defined)]
    numbers = cluster_mentions([m.entity for m in mentions], defined, _lists(mentions, passages))
    names: dict[int, list[str]] = defaultdict(list)
    best: dict[tuple[int, int], float] = defaultdict(float)
    shares: dict[int, float] = defaultdict(float)
    for number, mention in zip(numbers, mentions, strict=True):
        names[number].append(mention.entity.text)
        best[number, mention.rank] = max(best[number, mention.rank], mention.score)
        shares[number] = max(shares[number], mention.share)
    own = _own_concepts(body, recognise)
    known = {n for n, m in zip(numbers, mentions, strict=True) if m.entity.concept in own}
    scores: dict[int, float] = defaultdict(float)
    for (number, _), score in best.items():
        scores[number] += score
    ranked = sorted(scores.items(), key=lambda entry: -entry[1])
    return [
        RankedName(tuple(usual_first(names[number])), score, shares[number])
        for number, score in ranked
        if number not in known
        and not any(_asked_about(name, body, asked) for name in names[number])
        and fit_together(kind, names[number])
        and (not of_genes or any(map(_is_gene, names[number])))
    ]


def _lists(mentions: Sequence[_Mention], passages: Sequence[ReadPassage]) -> list[list[str]]:
    """The mentions that a passage lists beside one another: "A, B and C".

    Without "and" a comma may stand between two names of one thing.
    """
    texts = {passage.rank: passage.text for passage in passages}
    lists: list[list[str]] = []
    ordered = sorted(mentions, key=lambda m: (m.rank, m.entity.begin))
    run, joined = ordered[:1], False
    for before, mention in itertools.pairwise([*ordered, None]):
        gap = ""
        if before and mention and before.rank == mention.rank:
            gap = texts[mention.rank][before.entity.end : mention.entity.begin]
        if mention and _LISTED.fullmatch(gap):
            joined = joined or "and" in gap
            run.append(mention)
            continue
        if joined:
            lists.append([m.entity.text for m in run])
        run, joined = [mention] if mention else [], False
    return lists


@dataclass(frozen=True, slots=True)
class _Mention:
    entity: Entity
    rank: int
    score: float
    share: float


def _mentions(
    body: str,
    passages: Sequence[ReadPassage],
    recognise: Recogniser,
    kind: Kind | None,
    asked: frozenset[str],
    longs: frozenset[str],
) -> Iterator[_Mention]:
    of_antibodies = _ANTIBODY.search(body)
    nouns = asked_nouns(body)
    aspect = asked_aspect(body)
    # A syndrome is listed with its own signs, and a drug with other drugs.
    of_treatment = kind == "effect" and looks_like(body) != "disease"
    # Of a question that denies ("Which drugs do not ...?") what is denied is the answer.
    affirms = not read_wording(body).negations
    for passage in passages:
        text = passage.text
        # A question of one word does not tell what it is about.
        share = passage.share_of(body) if len(asked) > 1 else 1.0
        concepts = {(e.begin, e.end): e for e in recognise(text)} if passage.reading.names else {}
        spans = [*concepts, *_places(text, longs)] if passage.reading.names else []
        for span in passage.reading.names:
            name, begin, end = trimmed(text, span.begin, span.end)
            if of_antibodies and (against := _AGAINST.search(name)):
                # What "aquaporin-4 antibodies" are against.
                end = begin + against.start()
                name = text[begin:end]
            begin, end = _whole(text, (begin, end), spans, asked)
            name = text[begin:end]
            if kind and (part := named_part(kind, name)):
                begin = end - len(part)
                name = part
            if not 1 < len(name) <= MAX_CHARS or not _LETTERS.search(name):
                continue
            if of_treatment and stands_beside(text, begin, end, asked):
                continue
            sentence, at = _sentence(passage, begin)
            here, there = begin - at, end - at
            if affirms and denies_name(sentence, here, there, asked):
                continue
            if kind == "drug" and is_for_another(sentence, there, asked):
                continue
            if kind == "effect" and is_scale(name, sentence[there:]):
                continue
            known = concepts.get((begin, end))
            entity = known or Entity(name, begin, end, "", "name")
            weight = _weight(passage, begin, end, nouns)
            if aspect and not aspect.search(sentence):
                weight *= OFF_ASPECT
            yield _Mention(entity, passage.rank, span.score * weight, share)


def _weight(passage: ReadPassage, begin: int, end: int, nouns: frozenset[str]) -> float:
    """What a name at [begin, end) of the passage counts by its place."""
    weight = passage.reading.relevance / (1 + RANK_LOSS * passage.rank)
    weight *= BEARS if bears(nouns, passage.text, begin, end) else 1.0
    return weight * passage.sentence_score(begin)


def _sentence(passage: ReadPassage, at: int) -> tuple[str, int]:
    """The sentence that holds the character `at`, and where it begins; the passage where the reader
    saw none.
    """
    spans = passage.reading.sentences
    span = next((s for s in spans if s.begin <= at < s.end), None)
    return (passage.text[span.begin : span.end], span.begin) if span else (passage.text, 0)


def _forms_of_asked(
    body: str, defined: Sequence[AbbreviationPair], asked: frozenset[str]
) -> frozenset[str]:
    """Short forms of what the question names in full, and where it asks for no name the long forms:
    "ICP" answers nothing about intrahepatic cholestasis of pregnancy.
    """
    found = {spelling(pair.short) for pair in defined if repeats(pair.long, asked)}
    if not _wants_a_name(body):
        found |= {spelling(pair.long) for pair in defined if repeats(pair.short, asked)}
    return frozenset(found)


def _is_code(entity: Entity, defined: Sequence[AbbreviationPair]) -> bool:
    """Whether it is in capitals and short for nothing, or for a scale: a score, a trial, a gene."""
    if entity.concept or not entity.text.isupper():
        return False
    longs = [pair.long for pair in defined if spelling(pair.short) == spelling(entity.text)]
    return not longs or any(map(is_scale, longs))


def _places(text: str, names: Collection[str]) -> Iterator[Span]:
    """Where each of `names` first stands in the text."""
    for name in names:
        if (begin := text.find(name)) >= 0:
            yield begin, begin + len(name)


def _whole(text: str, span: Span, concepts: Collection[Span], asked: frozenset[str]) -> Span:
    """The shortest name of the vocabulary, or with a short form beside it, that holds the span; a
    part names another thing.

    What the question has already is not added: "vitamin B12" of "vitamin B12 deficiency".
    """
    begin, end = span
    around = [c for c in concepts if c[0] <= begin and end <= c[1]]
    for first, last in sorted(around, key=lambda c: c[1] - c[0]):
        added = read_wording(f"{text[first:begin]} {text[end:last]}").words
        # A number of the question's is not what it asks about.
        if not any(word in asked for word in added if not word.isdigit()):
            return first, last
    return span


def trimmed(text: str, begin: int, end: int) -> tuple[str, int, int]:
    """The span without a section's label, what leads to a name, or a bracket that is closed outside
    of it.
    """
    begin += bare_label(text, begin)
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


def _own_concepts(body: str, recognise: Recogniser) -> frozenset[str]:
    """What the question is about; none where other names of it may answer."""
    if _wants_a_name(body):
        return frozenset()
    return frozenset(entity.concept for entity in recognise(body) if entity.concept)


def _wants_a_name(body: str) -> bool:
    """Whether the question asks for a name, a gene or a choice, so that other names may answer."""
    return bool(_FOR_A_NAME.search(body)) or " or " in body or asked_kind(body) == "gene"


def _is_gene(name: str) -> bool:
    return is_symbol(_NO_GENE.sub("", name)) or looks_like(name) == "gene"
