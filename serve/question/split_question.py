"""Split a question with several parts by its punctuation, numbering and conjunctions.

"What is asthma and how is it treated?" has two parts. Names joined by "and", relative clauses and
alternatives ("Is it viral or bacterial?") are not split. Only words of closed classes are used:
question words, auxiliaries, prepositions, pronouns, articles and conjunctions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cluster.answers import QuestionType
from cluster.text.sentences import sentence_spans
from serve.question.guess_type import begins_as_question, guess_type

# Bounds the work for one question; further parts stay in the last one.
MAX_PARTS = 5

_AUXILIARY = (
    r"(?:is|are|was|were|do|does|did|can|could|has|have|had|will|would|should|may|might|must)"
    r"(?:n['\u2019]t)?\b"
)
_SUBJECT = r"(?:it|they|he|she|we|you|I|one|there|this|these|those|people|patients)\b"
_DETERMINER = r"(?:the|a|an|any|its|their|his|her|this|these|those)\b"
_PREPOSITION = (
    r"(?:in|at|on|for|by|to|with|from|of|under|during|after|before|through|against|within|since)"
)
_AMOUNT = r"how (?:many|much|often|long|far|soon|well|common|likely)\b"
# A noun phrase after "what" or "which": words up to the auxiliary.
_NOUNS = rf"(?: (?!{_AUXILIARY})[^\s,;?]+){{1,5}}?"
_PLACE = rf"(?: {_PREPOSITION}(?: {_DETERMINER})? [^\s,;?]+)?"

# Beginnings of a direct question: a question word, then an auxiliary before the subject. "which"
# and "who" right before an auxiliary are more often relative pronouns ("and which are approved").
_WH = (
    rf"(?:{_PREPOSITION} )?(?:"
    rf"(?:what|whose)(?:{_NOUNS})? {_AUXILIARY}"
    rf"|which{_NOUNS} {_AUXILIARY}"
    rf"|which (?:is|are|was|were) {_DETERMINER}"
    r"|who(?:m? (?:do|does|did|can|could|will|would|should|may|might|must)\b)"
    rf"|(?:how|why) {_AUXILIARY}"
    rf"|(?:where|when){_PLACE} {_AUXILIARY}"
    rf"|{_AMOUNT}(?:{_NOUNS})? {_AUXILIARY}"
    r") ?(?=\w)"
)
_INVERTED = rf"(?:(?:do|does|did) (?!not\b)\w|{_AUXILIARY} {_SUBJECT})"
_INVERTED_NOUN = rf"{_AUXILIARY} {_DETERMINER}"
# The rest of the sentence is a question word or phrase that stands for a question: "and why?"
_SHORT = (
    r"(?:why|how|when|where"
    rf"|{_AMOUNT}(?: (?!{_AUXILIARY})[\w-]+){{0,3}}"
    rf"|(?:what|which)(?: (?!{_AUXILIARY})[\w-]+){{1,3}}"
    rf"|{_PREPOSITION} (?:what|which|whom|whose|{_AMOUNT})(?: (?!{_AUXILIARY})[\w-]+){{0,3}})"
    r"(?: not)?\W*$"
)
_IF_SO = (
    rf"if (?:so|not|yes|no),? (?=(?:{_PREPOSITION} )?"
    rf"(?:what|which|who|whom|whose|where|when|why|how|{_AUXILIARY}))"
)
_JOINED = re.compile(
    rf"(?P<comma>[,;])?(?: (?P<word>and|but)(?: also| then)?,?)? (?:(?P<if_so>{_IF_SO})"
    rf"|(?P<wh>{_WH})|(?P<inverted>{_INVERTED})|(?P<noun>{_INVERTED_NOUN})|(?P<short>{_SHORT}))",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(r"\A(?:and|or|but|also|then|so)\b,? ", re.IGNORECASE)
_LEADING_IF_SO = re.compile(r"\Aif (?:so|not|yes|no)\b,? ", re.IGNORECASE)
_LEADING_PREPOSITION = re.compile(rf"\A{_PREPOSITION} (?=what|which|whom|whose|how)", re.IGNORECASE)
_REQUEST = re.compile(
    r"(?:please )?(?:define|list|name|enumerate|describe|explain|summari[sz]e|compare|discuss|give"
    r"|provide)\b",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(rf"(?:when|where)\b(?!{_PLACE} {_AUXILIARY})", re.IGNORECASE)
_SUBJECT_AFTER = re.compile(_SUBJECT, re.IGNORECASE)
_RELATIVE = re.compile(r"\w.*\b(?:which|that|who|whom|whose|where|when)\b", re.IGNORECASE)
_AFTER_MARK = re.compile(r"(?<=\?) ")
_NUMBER = re.compile(r"(?:^|(?<=[\s:;,]))\(?(?P<mark>[1-9]|[a-h]|i{1,3}|iv|v)[.)] ", re.IGNORECASE)
_SERIES = (tuple("123456789"), tuple("abcdefgh"), ("i", "ii", "iii", "iv", "v"))


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """A part of a question, as text that may refer to earlier parts, and its type."""

    text: str
    type: QuestionType


def split_question(body: str) -> tuple[QuestionPart, ...]:
    """Return the parts of a question in order, at most MAX_PARTS; () if it has only one.

    Statements stay with the question that follows them.
    """
    text = " ".join(body.split())
    texts = _numbered(text) or _asked(text)
    if len(texts) > MAX_PARTS:
        texts = [*texts[: MAX_PARTS - 1], " ".join(texts[MAX_PARTS - 1 :])]
    if len(texts) < 2:
        return ()
    parts: list[QuestionPart] = []
    for part in texts:
        question = part.split(": ")[-1]
        # "And in children?" asks the previous question again.
        kind = parts[-1].type if parts and not _is_direct(question) else _type_of(question)
        parts.append(QuestionPart(part, kind))
    return tuple(parts)


def _type_of(text: str) -> QuestionType:
    """Return the type of the last sentence of a part."""
    begin, end = sentence_spans(text)[-1]
    return guess_type(f"{_bare(text[begin:end]).rstrip('?')} ?")


def _bare(text: str) -> str:
    """Return a question without a leading conjunction, "if so" and preposition."""
    rest = _LEADING_IF_SO.sub("", _CONJUNCTION.sub("", text))
    return _LEADING_PREPOSITION.sub("", rest)


def _is_direct(text: str) -> bool:
    """Return True for a direct question or a request, ignoring a leading conjunction."""
    rest = _bare(text)
    if _SUBORDINATE.match(rest):
        return False
    return begins_as_question(rest) or bool(_REQUEST.match(rest))


def _numbered(text: str) -> list[str]:
    """Return the numbered items of `text` if all of them are questions or requests."""
    marks = list(_NUMBER.finditer(text))
    for series in _SERIES:
        found = [mark for mark in marks if mark["mark"].lower() in series]
        if len(found) < 2 or [m["mark"].lower() for m in found] != list(series[: len(found)]):
            continue
        ends = [mark.start() for mark in found[1:]] + [len(text)]
        items = [text[m.end() : end].strip(" ,;") for m, end in zip(found, ends, strict=True)]
        items = [re.sub(r"[,;]? and$", "", item) for item in items]
        if all(_is_direct(item) for item in items):
            stem = text[: found[0].start()].strip()
            return [f"{stem} {_finished(item)}".strip() for item in items]
    return []


def _asked(text: str) -> list[str]:
    """Return the questions of `text`, each with the statements before it."""
    sentences = [
        piece[begin:end]
        for piece in _AFTER_MARK.split(text)
        for begin, end in sentence_spans(piece)
    ]
    parts: list[str] = []
    stated = ""
    for sentence in sentences:
        if _asks(sentence, bool(parts)):
            first, *others = _clauses(sentence)
            parts += [f"{stated} {first}".strip(), *others]
            stated = ""
        elif sentence.endswith("?") and parts and not stated:
            parts[-1] += f" {sentence}"  # A fragment, such as "Yes or no?".
        else:
            stated = f"{stated} {sentence}".strip()
    if stated and parts:
        parts[-1] += f" {stated}"
    return parts


def _asks(sentence: str, is_later: bool) -> bool:
    """Return True if a sentence asks; a later one may be short, such as "And in children?"."""
    if not sentence.endswith("?"):
        return _is_direct(sentence) and (sentence[-1] != "." or bool(_REQUEST.match(sentence)))
    if is_later and _CONJUNCTION.match(sentence) and len(sentence.split()) > 2:
        return True
    return _has_direct(sentence)


def _has_direct(text: str) -> bool:
    """Return True if a text is a direct question, perhaps after "As of 2019," or "Asthma:"."""
    return any(_is_direct(clause) for clause in re.split(r"[,:] ", text))


def _clauses(sentence: str) -> list[str]:
    """Return the coordinated questions of a sentence that asks."""
    clauses = []
    begin = 0
    for match in _JOINED.finditer(sentence):
        before = sentence[begin : match.start()]
        if _is_boundary(match, before):
            clauses.append(_finished(before))
            begin = match.start(match.lastgroup or 0)
    clauses.append(_finished(sentence[begin:]))
    return clauses


def _is_boundary(match: re.Match[str], before: str) -> bool:
    """Return True if a question ends before `match` and another one begins there."""
    kind = match.lastgroup
    if not _has_direct(before):
        return False
    if kind == "if_so":
        return True
    joined = match["word"] is not None or match["comma"] == ";"
    has_verb = bool(re.search(rf"\b{_AUXILIARY}", before, re.IGNORECASE))
    if kind == "wh":
        asked = match["wh"].casefold()
        relative = re.match(r"(?:\w+ )?(?:who|which|where|when)\b", asked)
        if relative and _RELATIVE.match(before):
            return False
        has_subject = _SUBJECT_AFTER.match(match.string, match.end())
        return (joined or match["comma"] is not None) and (has_verb or has_subject is not None)
    if kind == "noun":
        return joined and guess_type(before) == "yesno"
    if kind == "short":
        return joined and (has_verb or len(before.split()) > 2)
    return joined and len(before.split()) > 2


def _finished(clause: str) -> str:
    """Return a clause as a sentence."""
    text = clause.strip(" ,;")
    return f"{text[:1].upper()}{text[1:]}{'' if text[-1:] in '?.!' else '?'}"
