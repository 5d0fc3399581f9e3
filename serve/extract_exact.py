"""Exact answers from the evidence alone, by question type, when no model gave a valid one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from cluster.mine_abbreviations import AbbreviationPair, mine_abbreviations
from cluster.records import Entity, Evidence, ExactAnswer, QuestionType
from serve.attribute_sentences import split_sentences
from serve.cluster_mentions import cluster_mentions, usual_first
from serve.compare_wording import Wording, coverage, polarity_agrees, read_wording, stem
from serve.extract_answer import strip_label
from serve.name_shapes import names_by_shape
from serve.spell_out import spelt_out

Recogniser = Callable[[str], list[Entity]]

MAX_FACTOIDS = 5
MAX_LIST = 100
MAX_CHARS = 100

# Below this share of the question's words a sentence takes no stance on it.
STANCE_COVERAGE = 0.3
DENIAL_WEIGHT = 2.0
# An item of a list must score at least this share of the best one.
LIST_SHARE = 0.25

_DENIES = re.compile(
    r"\b(?:no (?:significant|evidence|effect|association|difference|benefit|role|correlation|"
    r"relationship|improvement|link)|did not|does not|do not|was not|were not|is not|are not|"
    r"not (?:associated|effective|significant\w*|recommended|support\w*|improve\w*)|"
    r"cannot|failed to|lack of|ineffective|unlikely|neither)\b",
    re.IGNORECASE,
)
_FURTHERS = (
    "promote",
    "favor",
    "favour",
    "activate",
    "enhance",
    "improve",
    "cause",
    "induce",
    "stimulate",
    "increase",
)
_HINDERS = (
    "inhibit",
    "suppress",
    "restrict",
    "antagonize",
    "prevent",
    "block",
    "reduce",
    "decrease",
    "attenuate",
    "impair",
    "protect",
)


def decide_yesno(body: str, evidence: Sequence[Evidence]) -> str:
    """`yes` if the evidence affirms the question more than it denies it, else `no`.

    Silence is `no`, as in SINAI's prompt (paper 000, listing 2): its systems lost most
    by affirming what no passage said. So a denial also weighs double.
    """
    question = read_wording(body)
    balance = sum(
        stance(question, part) / (1 + rank / 10)
        for rank, item in enumerate(evidence)
        for part in split_sentences(item.passage.text)
    )
    return "yes" if balance > 0 else "no"


def stance(question: Wording, sentence: str) -> float:
    """Up to 1 where the sentence affirms, down to -2 where it denies, 0 where it is silent."""
    source = read_wording(sentence)
    held = coverage(question, source)
    if held < STANCE_COVERAGE:
        return 0.0
    denies = (
        not polarity_agrees(question, source)
        or _opposes(question, source)
        or bool(_DENIES.search(sentence))
    )
    return -DENIAL_WEIGHT * held if denies else held


def _opposes(question: Wording, source: Wording) -> bool:
    """Whether one only furthers what the other only hinders ("promote", "suppress")."""
    asked = question.words.keys() & _furthers(), question.words.keys() & _hinders()
    told = source.words.keys() & _furthers(), source.words.keys() & _hinders()
    return bool((asked[0] and told[1] and not told[0]) or (asked[1] and told[0] and not told[1]))


@cache
def _furthers() -> frozenset[str]:
    return frozenset(map(stem, _FURTHERS))


@cache
def _hinders() -> frozenset[str]:
    return frozenset(map(stem, _HINDERS))


def rank_entities(
    body: str,
    evidence: Sequence[Evidence],
    recognise: Recogniser,
    *,
    limit: int,
    min_share: float = 0.0,
) -> list[list[str]]:
    """Entities of the evidence that may answer `body`, best first, as lists of synonyms.

    An entity scores by each passage it is in, weighted by rank and by how much of the
    question stands in the same sentence; one that the question names itself is out.
    Mentions of one thing count together. Entities that score below `min_share` of the best
    are left out. [] when nothing scores.
    """
    asked = frozenset(read_wording(body).words)
    mentions = list(_mentions(body, evidence, recognise))
    numbers = cluster_mentions([m.entity for m in mentions], _definitions(evidence))
    names: dict[int, list[str]] = defaultdict(list)
    best: dict[tuple[int, int], float] = defaultdict(float)
    for number, mention in zip(numbers, mentions, strict=True):
        names[number].append(mention.entity.text)
        best[number, mention.rank] = max(best[number, mention.rank], mention.weight)
    scores: dict[int, float] = defaultdict(float)
    for (number, rank), weight in best.items():
        if not any(_named_in(name, asked) for name in names[number]):
            scores[number] += weight / (1 + rank / 5)
    floor = min_share * max(scores.values(), default=0.0)
    likely = [number for number, score in scores.items() if score >= floor]
    ranked = sorted(likely, key=lambda number: -scores[number])[:limit]
    return [usual_first(names[number]) for number in ranked]


@dataclass(frozen=True, slots=True)
class _Mention:
    """An entity in the passage of this rank, from 0; `weight` is what it adds there."""

    entity: Entity
    rank: int
    weight: float


def _mentions(body: str, evidence: Sequence[Evidence], recognise: Recogniser) -> Iterator[_Mention]:
    question = read_wording(body)
    for rank, item in enumerate(evidence):
        for part in map(strip_label, split_sentences(item.passage.text)):
            weight = 0.1 + coverage(question, read_wording(part))
            for entity in sorted(add_names(part, recognise(part)), key=lambda e: e.begin):
                if len(entity.text) <= MAX_CHARS:
                    yield _Mention(entity, rank, weight * entity.score)


def _definitions(evidence: Sequence[Evidence]) -> Iterator[AbbreviationPair]:
    for item in evidence:
        yield from mine_abbreviations(item.passage.text)


def group_names(
    names: Sequence[str], evidence: Sequence[Evidence], recognise: Recogniser
) -> list[list[str]]:
    """The names in their order, but those of one thing in one group, as the evidence has it."""
    entities = [_as_entity(name, recognise) for name in names]
    groups: dict[int, list[str]] = defaultdict(list)
    for number, name in zip(cluster_mentions(entities, _definitions(evidence)), names, strict=True):
        groups[number].append(name)
    return list(groups.values())


def _as_entity(name: str, recognise: Recogniser) -> Entity:
    whole = (entity for entity in recognise(name) if entity.text == name)
    return next(whole, Entity(name, 0, len(name), "", "name"))


def add_names(text: str, entities: Sequence[Entity]) -> list[Entity]:
    """`entities` and what else in `text` is written like a name ("AMG334", "FunImageJ").

    New genes, drugs and programs are in no vocabulary, and questions ask for them.
    """
    taken = [(entity.begin, entity.end) for entity in entities]
    named = [
        Entity(name, begin, end, "", "name")
        for name, begin, end in names_by_shape(text)
        if not any(b < end and begin < e for b, e in taken)
    ]
    return [*entities, *named]


def extract_exact(
    kind: QuestionType,
    body: str,
    evidence: Sequence[Evidence],
    recognise: Recogniser,
) -> ExactAnswer:
    """The exact answer in BioASQ's form for `kind`; None for summary and unknown."""
    if kind == "yesno":
        return decide_yesno(body, evidence)
    if kind == "factoid":
        return _factoids(body, evidence, recognise)
    if kind == "list":
        return rank_entities(body, evidence, recognise, limit=MAX_LIST, min_share=LIST_SHARE)
    return None


def _factoids(body: str, evidence: Sequence[Evidence], recognise: Recogniser) -> list[list[str]]:
    """Ranked entities, after what a short form that the question asks about stands for."""
    long = spelt_out(body, _definitions(evidence))
    ranked = rank_entities(body, evidence, recognise, limit=MAX_FACTOIDS)
    return [*([long] if long else []), *ranked][:MAX_FACTOIDS]


def _named_in(name: str, asked: frozenset[str]) -> bool:
    words = read_wording(name).words or {stem(name): 1.0}
    return words.keys() <= asked


def distinct(names: Sequence[str]) -> list[str]:
    """The names in their order, each once whatever its case."""
    kept: dict[str, str] = {}
    for name in names:
        kept.setdefault(name.casefold(), name)
    return list(kept.values())
