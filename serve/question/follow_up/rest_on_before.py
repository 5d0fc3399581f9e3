"""Whether a question rests on what was asked before it, and in which way.

Doubt counts for standing alone: a question that is searched as it was typed is never misread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cluster.records import Entity
from serve.answer.names.name_kinds import looks_like
from serve.question.follow_up.context_words import ASPECT, GROUP, names_nothing

Way = Literal["why", "about", "pronoun", "no-topic"]
PREPOSITIONS = (
    r"in|for|during|after|before|while|with|without|among|by|on|at|from|under|against|versus|vs"
)
_FILLER = r"(?:(?:and|so|ok|okay|but|also|then|or|now|thanks|thank you|well|right)\b[\s,.!]*)"
_WHY = re.compile(
    rf"{_FILLER}*(why|how|how so|why so|why not|how come|why is (?:that|this|it)|how is that)"
    r"(?: so)?",
    re.IGNORECASE,
)
_ABOUT = re.compile(rf"{_FILLER}*(?:(?:what|how) about|what if(?: it is)?)\s++(.+)", re.IGNORECASE)
_ALSO_TRUE = re.compile(
    rf"{_FILLER}*(?:is|was) (?:this|that|it) (?:also )?(?:true|so|the case|the same|different) "
    rf"((?:{PREPOSITIONS})\s++.+)",
    re.IGNORECASE,
)
_JOINED = re.compile(r"(?:and|but|or|also)\b[\s,]*+(.+)", re.IGNORECASE)
_BARE = re.compile(rf"(?:any\s++)?((?:{PREPOSITIONS})\s++.+|[\w\s-]+)", re.IGNORECASE)
_ASKS = re.compile(
    r"\b(?:is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|may|might|must"
    r"|what|which|who|whom|whose|where|when|how|why|list|name|describe|explain)\b",
    re.IGNORECASE,
)
NOUNS = {
    "drug": r"drugs?|medications?|medicines?|treatments?|therap(?:y|ies)|compounds?|agents?"
    r"|inhibitors?|antibod(?:y|ies)|vaccines?|substances?|supplements?",
    "disease": r"diseases?|syndromes?|disorders?|conditions?|infections?|cancers?|tumou?rs?"
    r"|illness(?:es)?",
    "gene": r"genes?|proteins?|enzymes?|receptors?|kinases?|mutations?|variants?|pathways?",
    "other": r"tests?|procedures?|methods?|approach(?:es)?|effects?|associations?|interactions?",
}
_NOUN = "|".join(NOUNS.values())
POINTING = re.compile(
    rf"\b(?:(?P<its>its|their)|(?P<it>it(?!['\u2019])|they|them)"
    rf"|(?P<noun>(?:this|that|these|those|such)\s+(?:{_NOUN}))"
    r"|(?P<this>(?:this|that|these|those)(?=\s*(?:\?|$)|\s+(?:cause|work|help|mean|affect|also"
    r"|safe|effective|a|an|the|be|in|with|for|used|associated|still|increase|reduce|treat|inherited"
    r"|curable|common|true)\b)))\b",
    re.IGNORECASE,
)
THE_NOUN = re.compile(rf"\bthe\s+(?P<noun>{_NOUN})\b(?!\s+(?:of|for|that|which|who)\b)", re.I)
_EXPLETIVE = re.compile(
    r"\b(?:is|was|would|will|does|could|can|might)\s+it\s+(?:be\s+)?(?:[\w-]+\s+){0,3}?(?:that|to"
    r"|if|whether|when|for \w+ to)\b|\bit (?:is|was|has been|seems|appears)\b",
    re.IGNORECASE,
)
_DANGLING = re.compile(
    r"\b(?:is|was|would)\s+it\s+(?:[\w-]+\s+){1,2}to\s+(?:be\s+)?[\w-]+"
    rf"(?:\s+(?:it|them))?\s*(?:\b(?:{PREPOSITIONS}|while|when|if)\b|\?|$)",
    re.IGNORECASE,
)
_NEW_CLAUSE = re.compile(
    r"[,;:]|\b(?:and|or|but|that|which|who|when|if|because|after|before|where|while|whether|how|what|why)\b",
    re.IGNORECASE,
)
# "What are antibodies?" asks about antibodies.
_DEFINES = re.compile(r"what (?:is|are) (?:an? )?(?!the\b)[\w-]+", re.IGNORECASE)
_MOST_FRAGMENT_WORDS = 6
_MOST_TOPICLESS_WORDS = 14


@dataclass(frozen=True, slots=True)
class Rests:
    """How a question rests on the one before; `rest` is what an elliptic one names."""

    way: Way
    rest: str = ""


def topics(body: str, entities: Sequence[Entity]) -> list[Entity]:
    """The entities that are neither aspects nor groups of people, and other words like names."""
    found = [e for e in entities if not names_nothing(e.text)]
    taken = [(e.begin, e.end) for e in entities]
    for word in re.finditer(r"[\w-]+", body):
        begin, end = word.span()
        free = not any(b < end and begin < e for b, e in taken)
        if free and looks_like(word[0]) and not names_nothing(word[0]):
            found.append(Entity(word[0], begin, end, "", ""))
    return sorted(found, key=lambda e: e.begin)


def rests_on_before(body: str, entities: Sequence[Entity]) -> Rests | None:
    """How a question rests on the one before it; None for one that stands alone."""
    text = " ".join(body.split())
    asked = text.rstrip(" ?.")
    own = topics(text, entities)
    if why := _WHY.fullmatch(asked):
        asks = why[1].casefold()
        word = "why not" if "not" in asks else "why"
        return Rests("why", "how" if asks.startswith("how") and asks != "how come" else word)
    if elliptic := _elliptic(asked, own):
        return Rests("about", elliptic)
    if _points_back(text, own):
        return Rests("pronoun")
    few = len(text.split()) <= _MOST_TOPICLESS_WORDS and not _DEFINES.fullmatch(asked)
    if not own and few and names_nothing(text):
        # "types of mutations" has a topic, though a general one.
        return None if re.search(r"\bof\b", ASPECT.sub("", text)) else Rests("no-topic")
    return None


def _elliptic(text: str, own: Sequence[Entity]) -> str:
    """What a question without a verb asks about, or ""."""
    if true := _ALSO_TRUE.fullmatch(text):
        return true[1]
    if about := _ABOUT.fullmatch(text):
        rest = about[1]
        # Two topics, or an aspect of a topic, make a question of their own.
        whole = len(own) > 1 or (own and ASPECT.search(rest) and " of " in rest)
        return "" if whole else rest
    joined = _JOINED.fullmatch(text)
    if joined and not _ASKS.search(joined[1]):
        short = len(joined[1].split()) <= _MOST_FRAGMENT_WORDS
        return joined[1] if short and len(own) < 2 else ""
    bare = _BARE.fullmatch(text)
    if bare is None or _ASKS.search(text) or len(text.split()) > _MOST_FRAGMENT_WORDS:
        return ""
    begins = re.match(rf"(?:{PREPOSITIONS})\b", bare[1], re.IGNORECASE)
    named = begins or ASPECT.search(bare[1]) or GROUP.search(bare[1])
    return bare[1] if named and (begins or not own) and len(own) < 2 else ""


def _points_back(text: str, own: Sequence[Entity]) -> bool:
    if _DANGLING.search(text):
        return True
    if _EXPLETIVE.search(text):
        return False
    for found in POINTING.finditer(text):
        before = [e for e in own if e.end <= found.start()]
        if not before and names_nothing(text[: found.start()]):
            return True
        between = text[before[-1].end : found.start()] if before else ""
        if before and found["it"] and not _NEW_CLAUSE.search(between):
            return True
    return bool(THE_NOUN.search(text)) and not own and names_nothing(text)
