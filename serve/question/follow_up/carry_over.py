"""A question that rests on the one before, made to stand alone by rules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cluster.records import Entity
from serve.answer.names.name_kinds import looks_like
from serve.question.follow_up.context_words import ASPECT, ASPECTS, GROUP, names_nothing
from serve.question.follow_up.rest_on_before import (
    NOUNS,
    POINTING,
    PREPOSITIONS,
    THE_NOUN,
    Rests,
    topics,
)

_LEAD = re.compile(
    r"^(?:(?:and|so|ok|okay|but|also|then|or|now|thanks|thank you|well|right)\b[\s,.!]*)+",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(
    r"(?:is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|may|might|must)\b",
    re.IGNORECASE,
)
_PHRASE = re.compile(rf"\b({PREPOSITIONS})\s+((?:(?!\b(?:{PREPOSITIONS})\b)[^?])+)\??$", re.I)
_NAMELIKE = re.compile(r"\b(?:[A-Z][\w-]*[A-Z0-9][\w-]*|[a-z]+-?\d+[\w-]*|[A-Z][a-z]{3,}[\w-]*)\b")
_DETERMINER = re.compile(
    rf"^(?:(?:its|their|the|any|some)\s+)*(?:(?:evidence|data|studies|trials|results)\s+"
    rf"(?=(?:{PREPOSITIONS})\b))?",
    re.IGNORECASE,
)
# Of those that `looks_like` cannot tell by their endings.
_DISEASE = re.compile(
    r"\b(?:diabetes|obesity|hypertension|asthma|malaria|stroke|epilepsy|autism|dementia|influenza"
    r"|migraine|depression|schizophrenia|copd|hiv|aids|covid(?:-19)?|sepsis|failure|infarction"
    r"|fractures?|injury|hiv infection|measles|psoriasis|heart attack|pain)\b",
    re.IGNORECASE,
)
_PLURAL_ASKED = re.compile(
    r"(?:which|what)\s+((?:[\w-]+\s+){0,2}?[\w-]+s)\s+(?!are the\b|is\b|was\b)(.+?)\?*", re.I
)
# Aspects of what joins two topics.
_OF_BOTH = re.compile(r"\b(?:mechanisms?|risk|incidence)\b", re.IGNORECASE)
_ITS_ASPECT = re.compile(rf"\b(?:its|their)\s+({ASPECT.pattern})", re.IGNORECASE)
_FIRST_WORD = re.compile(r"\w[\w-]*")


def carry_over(
    body: str, entities: Sequence[Entity], rests: Rests, before: str, named: Sequence[Entity]
) -> str:
    """`body` as a question that needs none before it.

    `before` is a question that stands alone, `named` are its entities and `entities` those of
    `body`. Where it names nothing to carry over, both questions are joined.
    """
    text = _LEAD.sub("", " ".join(body.split()))
    text = text[:1].upper() + text[1:]
    known = [e.text for e in topics(before, named)] or _namelike(before)
    if rests.way == "why":
        return _why(rests.rest, before)
    if not known:
        return f"{before} {text}"
    if rests.way == "about":
        new = [e.text for e in topics(body, entities)]
        return _about(rests.rest, new, before, known)
    if rests.way == "pronoun":
        return _put_in(text, known, _PLURAL_ASKED.fullmatch(before))
    both = len(known) > 1 and _OF_BOTH.search(text) and _AUXILIARY.match(before)
    return _with_topic(text, " and ".join(known[:2]) if both else known[0])


def _namelike(text: str) -> list[str]:
    """Words that look like names; else those that say most, as a name no vocabulary has does."""
    first = _FIRST_WORD.search(text)
    rest = text[first.end() :] if first else text
    said = [word for word in re.findall(r"[\w-]{5,}", rest) if not names_nothing(word)]
    return _NAMELIKE.findall(rest) or said


def _why(asks: str, before: str) -> str:
    """`asks` is "how", "why" or "why not"."""
    if _AUXILIARY.match(before):
        word, _, negated = asks.partition(" ")
        end = ", or why not?" if negated else "?"
        return f"{word.capitalize()} {before[0].lower()}{before[1:].rstrip('? ')}{end}"
    return f"{before.rstrip('? ')}, and {asks}?"


def _put_in(text: str, known: Sequence[str], asked: re.Match[str] | None) -> str:
    """The question with names in the place of words that point back.

    `asked` are the things that the question before asks for, which "they" may be.
    """
    if not POINTING.search(text):
        if THE_NOUN.search(text):
            return THE_NOUN.sub(lambda m: _meant(m["noun"], known), text)
        # "Is it safe to take with alcohol?": what is taken is not said.
        return f"{text.rstrip('?')} ({known[0]})?"

    if asked and re.search(r"\btheir\b", text, re.IGNORECASE):
        known = [f"the {asked[1]} that {asked[2]}"]
    text = _ITS_ASPECT.sub(lambda m: f"the {m[1]} {ASPECTS[m[1].casefold()]} {known[0]}", text)

    def name(found: re.Match[str]) -> str:
        if found["noun"]:
            return _meant(found["noun"].split()[-1], known)
        if asked and found[0].casefold() in ("they", "them"):
            return f"the {asked[1]} that {asked[2]}"
        return f"{known[0]}'s" if found["its"] else known[0]

    return _capital(POINTING.sub(name, text))


def _meant(noun: str, known: Sequence[str]) -> str:
    """The first name that may be such a thing."""
    kind = next((k for k, nouns in NOUNS.items() if re.fullmatch(nouns, noun, re.I)), "other")
    alike = [name for name in known if looks_like(name) == kind]
    unclear = [name for name in known if looks_like(name) is None]
    return (alike or unclear or list(known))[0]


def _about(rest: str, new: Sequence[str], before: str, known: Sequence[str]) -> str:
    rest = _DETERMINER.sub("", rest)
    phrase = re.match(rf"({PREPOSITIONS})\s+(.+)", rest, re.IGNORECASE)
    if phrase:
        return _with_phrase(phrase[1], phrase[2], bool(new), before, known)
    if ASPECT.search(rest):
        return f"Describe the {_with_topic(rest, known[0]).rstrip('?')}."
    if GROUP.search(rest) and not new:
        return _with_phrase("in", rest, False, before, known)
    if not new:
        return f"{before.rstrip('? ')}, with regard to {rest}?"
    alike = [name for name in known if _is_disease(name) == _is_disease(rest)]
    old = (alike or list(known))[0]
    return _capital(before.replace(old, rest, 1))


def _is_disease(name: str) -> bool:
    return looks_like(name) == "disease" or bool(_DISEASE.search(name))


def _with_phrase(
    preposition: str, what: str, named: bool, before: str, known: Sequence[str]
) -> str:
    """The question before, with a phrase in the place of its own last one of that preposition."""
    bare = before.rstrip("? ")
    last = _PHRASE.search(bare)
    if last and last[1].casefold() == preposition.casefold():
        topic = any(name in last[2] for name in known)
        if named or not topic:
            return f"{bare[: last.start()]}{preposition} {what}?"
    return f"{bare} {preposition} {what}?"


def _with_topic(text: str, topic: str) -> str:
    """The question with the topic after the aspect that it asks about, or at its end."""
    if found := ASPECT.search(text):
        joint = ASPECTS[found[0].casefold()]
        after = text[found.end() :]
        verb = re.match(r"\s+(?:are|is|were)\s+(\w+)", after)
        if joint == "in" and verb:
            end = found.end() + verb.end()
            return f"{text[:end]} in {topic}{text[end:]}"
        return f"{text[: found.end()]} {joint} {topic}{after}"
    if names_nothing(text):
        return f"{text.rstrip('?')} ({topic})?"
    return text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
