"""Split a question with several parts at question marks, at numbered items and at "if so".

Parts that are joined in other ways ("What is asthma and how is it treated?") are not split.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cluster.answers import QuestionType
from cluster.text.sentences import sentence_spans
from serve.question.guess_type import begins_as_question, guess_type

# Bounds the work for one question; further parts stay in the last one.
MAX_PARTS = 5
_LEADING = re.compile(r"(?:and|but|or|also|then)\b,? ", re.IGNORECASE)
_IF_SO = re.compile(r"if (?:so\b,?|not,) ", re.IGNORECASE)
_JOINED_IF_SO = re.compile(r",? (?:(?:and|but),? )?(?=if (?:so\b|not,))", re.IGNORECASE)
# "At what dose?"
_PREPOSITION = re.compile(r"\w+ (?=(?:what|which|whom|whose|how)\b)", re.IGNORECASE)
_NUMBER = re.compile(r"(?:^|(?<=[\s:;,]))\(?(?P<mark>[1-9]|[a-h]|i{1,3}|iv|v)[.)] ", re.IGNORECASE)
_SERIES = (tuple("123456789"), tuple("abcdefgh"), ("i", "ii", "iii", "iv", "v"))


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """A part of a question, as text that may refer to earlier parts, and its type."""

    text: str
    type: QuestionType


def split_question(body: str) -> tuple[QuestionPart, ...]:
    """Return the parts of a question in order, at most MAX_PARTS; () if it has only one.

    A statement belongs to the question that follows it.
    """
    text = " ".join(body.split())
    texts = _numbered(text) or _asked(text)
    if len(texts) > MAX_PARTS:
        texts = [*texts[: MAX_PARTS - 1], " ".join(texts[MAX_PARTS - 1 :])]
    if len(texts) < 2:
        return ()
    parts: list[QuestionPart] = []
    for part in texts:
        begin, end = sentence_spans(part)[-1]
        asked = _bare(part[begin:end].split(": ")[-1])
        # "And in children?" asks the previous question again.
        repeats = parts and not begins_as_question(asked)
        kind = parts[-1].type if repeats else guess_type(f"{asked.rstrip('?')} ?")
        parts.append(QuestionPart(part, kind))
    return tuple(parts)


def _bare(text: str) -> str:
    """Return a question without a leading conjunction, "if so" and preposition."""
    return _PREPOSITION.sub("", _IF_SO.sub("", _LEADING.sub("", text, 1), 1), 1)


def _numbered(text: str) -> list[str]:
    """Return the numbered items of `text` if all of them are questions."""
    marks = list(_NUMBER.finditer(text))
    for series in _SERIES:
        found = [mark for mark in marks if mark["mark"].lower() in series]
        if len(found) < 2 or [m["mark"].lower() for m in found] != list(series[: len(found)]):
            continue
        ends = [mark.start() for mark in found[1:]] + [len(text)]
        items = [text[m.end() : end].strip(" ,;") for m, end in zip(found, ends, strict=True)]
        items = [re.sub(r"[,;]? and$", "", item) for item in items]
        if all(map(begins_as_question, items)):
            stem = text[: found[0].start()].strip()
            return [f"{stem} {_finished(item)}".strip() for item in items]
    return []


def _asked(text: str) -> list[str]:
    """Return the questions of `text`, each with the statements before it."""
    parts: list[str] = []
    stated = ""
    for sentence in re.split(r"(?<=\?) ", text):
        begin = sentence_spans(sentence)[-1][0] if sentence else 0
        last = sentence[begin:]
        if sentence.endswith("?") and _asks(last, bool(parts)):
            first, *others = _JOINED_IF_SO.split(last)
            if not first:  # The sentence begins with "If so".
                first, others = last, []
            parts += map(_finished, [f"{stated} {sentence[:begin]}{first}", *others])
            stated = ""
        else:  # A statement, or a fragment such as "Yes or no?".
            stated = f"{stated} {sentence}".strip()
            if parts:
                parts[-1] += f" {stated}"
                stated = ""
    return parts


def _asks(sentence: str, is_later: bool) -> bool:
    """Return True for a question; a later one may be short, such as "And in children?"."""
    if is_later and _LEADING.match(sentence) and len(sentence.split()) > 2:
        return True
    return begins_as_question(_bare(sentence))


def _finished(clause: str) -> str:
    """Return a clause as a sentence."""
    text = clause.strip(" ,;")
    return f"{text[:1].upper()}{text[1:]}{'' if text[-1:] in '?.!' else '?'}"
