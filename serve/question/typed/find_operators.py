"""Decide which AND, OR and NOT are Boolean operators, and which are ordinary words.

As in PubMed, operators are in capitals. They are ordinary words in a question, in prose that is all
in capitals, and if adjacent words show it: `do NOT`, `the OR`, `AND gate`, `(OR)`, `OR 2.3`.
"""

from __future__ import annotations

import re

from serve.question.guess_type import begins_as_question, is_auxiliary

_OPERATOR = re.compile(r'(?<![^\s()"\]])(?:AND|OR|NOT)(?![^\s()"])')
_QUOTED = re.compile(r'"[^"]*"')
_WORD = re.compile(r"\w+")
_SENTENCE_MARKS = re.compile(r"[\s.,;:?!()\"]")
# "a" is not listed, because it also occurs in "hepatitis A".
_PROSE = re.compile(r"\b(?:AN|THE|OF|IN|ON|TO|FOR|WITH|WITHOUT|BY|FROM|AT|AS|THAN|THAT|THIS|IF)\b")
_BEFORE_ODDS_RATIO = re.compile("a|an|the|whether|adjusted|unadjusted|crude|pooled")
_BEFORE_GATE = re.compile(r"\s+(?:logic\s+)?(?:gates?|logic)\b", re.IGNORECASE)
_BEFORE_RATIO = re.compile(r"\s*=|\s*\d{1,4}[.,\u00b7]\d")


def is_question(text: str) -> bool:
    """Return True if `text` begins like a question, or has "?" and a question word."""
    starts = [text, *_WORD.findall(text)] if "?" in text else [text]
    return any(map(begins_as_question, starts))


def is_prose_in_capitals(text: str) -> bool:
    """Return True if `text` has no lower-case letters but words such as OF, as prose has."""
    is_prose = _PROSE.search(text) or any(map(is_auxiliary, _WORD.findall(text)))
    return text == text.upper() and bool(is_prose)


def end_of_prose(text: str, first_tag: int | None) -> int:
    """Return the end of the question or prose that `text` begins with, which has no operators.

    `first_tag` is the position of the first field tag, or None. A question ends with the last
    question mark before that tag. In a text without tags, a question without a mark is the whole
    text. Returns 0 if `text` does not begin with a question or prose.
    """
    end = text.rfind("?", 0, first_tag) + 1
    if end and is_question(text[:end]):
        return end
    if first_tag is not None:
        return 0
    signs = _SENTENCE_MARKS.sub("", _OPERATOR.sub("", text))
    # Text without letters or digits has no terms that an operator could join.
    is_noise = bool(signs) and not _WORD.search(signs)
    return len(text) if is_noise or is_question(text) or is_prose_in_capitals(text) else 0


def operators_in(text: str, begin: int = 0) -> list[int]:
    """Return the positions of operators in `text` from `begin` on. Quoted ones are words."""
    unquoted = _QUOTED.sub(lambda quoted: '"' * len(quoted[0]), text)
    return [m.start() for m in _OPERATOR.finditer(unquoted, begin) if not _is_word(text, m)]


def _is_word(text: str, operator: re.Match[str]) -> bool:
    """Return True if the words next to an operator show that it is an ordinary word."""
    before, end = text[: operator.start()].rstrip(), operator.end()
    if before.endswith("(") and text[end:].lstrip().startswith(")"):
        return True
    if _BEFORE_GATE.match(text, end):
        return True
    last = before.rpartition(" ")[2].casefold()
    if operator[0] == "NOT":
        return is_auxiliary(last)
    if operator[0] == "OR":
        return bool(_BEFORE_ODDS_RATIO.fullmatch(last) or _BEFORE_RATIO.match(text, end))
    return False
