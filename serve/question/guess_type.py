"""Guess the type of a question from its first words."""

from __future__ import annotations

import re
from dataclasses import replace

from cluster.answers import Question, QuestionType

_YESNO = re.compile(
    r"(is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|may|might|must)"
    r"(n['\u2019]t)?\b"
)
# "As of 2019, are gangliosides a target?" and "Tocilizumab is an antibody, yes or no?"
_YESNO_LATER = re.compile(rf"[^,?]*, {_YESNO.pattern}|.*\byes or no\W*$")
_ENUMERATE = re.compile(r"(list|name|enumerate)\b")
_HOW = re.compile(r"how (?!many|much|often|long|old|common|large)|why\b|describe\b|explain\b")
# "What is X?" asks for a definition, "What is the Y of X?" for a fact.
_DEFINES = re.compile(
    r"what (is|are)( an?| the)?( (?!(of|for|by|in|with|to)\b)[^\s?]+){1,3}\s*\??$"
)
_EXPLAINS = re.compile(
    r"(what|which) (is|are|was|were) (the |known )?(\w+ ){0,2}(mechanisms?|mode|functions?|roles?|"
    r"differences?|effects?|purpose|importance|rationale|basis|relationship|link|association|"
    r"use|aim|about)\b"
)
_PLURAL = re.compile(
    r"(what|which) (are|were)\b"
    r"|(what|which) ([^\s]+ ){0,4}?(\w*[^su\Wi]s|bacteria|criteria|mirnas) "
    r"(are|were|have|do|can|could|may|of|\w+ed)\b"
)
_ASKS = re.compile(r"\b(what|which|who|whom|whose|where|when|how)\b")


def begins_as_question(text: str) -> bool:
    """Return True if `text` begins like a question or a request, ignoring case."""
    first = re.sub(r"^please ", "", " ".join(text.casefold().split()).lstrip(".,:;\"'("))
    return any(pattern.match(first) for pattern in (_YESNO, _ENUMERATE, _HOW, _ASKS))


def is_auxiliary(word: str) -> bool:
    """Return True if `word` is a verb that begins a yes/no question, ignoring case."""
    return _YESNO.fullmatch(word.casefold()) is not None


def typed(question: Question) -> Question:
    """Return the question with its type guessed if it is unknown."""
    if question.type != "unknown":
        return question
    return replace(question, type=guess_type(question.body))


def guess_type(body: str) -> QuestionType:
    """Guess a question's type.

    An auxiliary verb at the start or after a leading clause means yesno; a plural or a request to
    list means list; how, why, a definition, a mechanism or a role means summary; another question
    word means factoid.
    """
    text = re.sub(r"^please ", "", " ".join(body.casefold().split()))
    if _YESNO.match(text) or (not _ASKS.search(text) and _YESNO_LATER.match(text)):
        return "yesno"
    if _ENUMERATE.match(text):
        return "list"
    if _HOW.match(text) or _DEFINES.match(text) or _EXPLAINS.match(text):
        return "summary"
    if _PLURAL.match(text):
        return "list"
    return "factoid" if _ASKS.search(text) else "summary"
