"""Find the field tags and the Boolean operators of a question.

A tag follows its term, as in `Smith J[au]`. Brackets also occur in ordinary text, as in
`benzo[a]pyrene`, `[18F]FDG`, `C[max]` or `emergency department [ED]`. A name that is not a PubMed
tag is only treated as a tag after a quoted term or in a text that has other tags.

As in PubMed, operators are in capitals. They are ordinary words in a question and in quotes; NOT is
also one after an auxiliary verb ("do NOT resuscitate").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from serve.question.field_tags.field_names import ELEMENTS, field_of
from serve.question.guess_type import begins_as_question, is_auxiliary

_BRACKETED = re.compile(r"\[([^\[\]]{1,60})\]")
_NAME = re.compile(r"1?[A-Za-z][A-Za-z /&-]{0,50}")
_ROMAN = re.compile(r"[IVX]+")
_STOP = re.compile(r"\s*(?:$|[);,]|\?\s*$|(?:AND|OR|NOT)(?![^\s(\"]))")
# A word that follows without a space, as in benzo[a]pyrene.
_WORD_ON = re.compile(r"(?!(?:AND|OR|NOT)\b)[\w+-]")
_SHORT_NAME = 3
_OPERATOR = re.compile(r'(?<![^\s()"\]])(?:AND|OR|NOT)(?![^\s()"])')
_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True, slots=True)
class Tag:
    """A field tag: its position in the text, its kind, and the tag as it was written.

    `kind` is a field, or the reason why the tag cannot be applied (see `field_names`). The span
    includes the white space before the tag.
    """

    begin: int
    end: int
    kind: str
    written: str


def tags_in(text: str) -> list[Tag]:
    """Return the field tags of `text`, in order."""
    brackets = [(m, kind) for m in _BRACKETED.finditer(text) if (kind := _kind(m[1]))]
    has_tags = any(_is_tag(text, m) for m, kind in brackets if kind != "unknown")
    return [
        Tag(len(text[: m.start()].rstrip()), m.end(), kind, m[0])
        for m, kind in brackets
        if (_is_placed(text, m, has_tags) if kind == "unknown" else _is_tag(text, m))
    ]


def _kind(content: str) -> str:
    """Return the kind of tag that the text in brackets may be; "" if it is not a tag."""
    content = re.sub("[\u2010-\u2014]", "-", content)
    name, colon, qualifier = (part.strip() for part in content.partition(":"))
    if not _NAME.fullmatch(name):
        return ""
    field = field_of(name) or "unknown"
    is_noexp = qualifier.casefold() == "noexp" and field in ("mh", "pt", "unsupported")
    return field if not colon or is_noexp or field == "unknown" else "qualified"


def _is_placed(text: str, bracket: re.Match[str], has_tags: bool) -> bool:
    """Return True if an unknown name in brackets is at a position where a tag can be."""
    term = text[: bracket.start()].rstrip()
    follows = term.endswith('"') or (has_tags and bool(term))
    return follows and not _ROMAN.fullmatch(bracket[1]) and bool(_STOP.match(text, bracket.end()))


def _is_tag(text: str, bracket: re.Match[str]) -> bool:
    """Return True if a known name in brackets is not a symbol, locant or abbreviation."""
    name, before = bracket[1].strip(), text[: bracket.start()]
    term = before.rstrip()
    if len(name) <= _SHORT_NAME and _WORD_ON.match(text, bracket.end()):
        return False
    if _ROMAN.fullmatch(name):
        # [VI] is the tag for a volume after a number, but not in chromium[VI] or Cr[VI].
        return term.endswith(('"', *"0123456789"))
    if name in ELEMENTS:
        ends_part = bool(_STOP.match(text, bracket.end())) and not is_question(text)
        return bool(term) and (term == before or term.endswith('"') or ends_part)
    return not _abbreviates(name, before)


def _abbreviates(name: str, before: str) -> bool:
    """Return True if a name in capitals has the initials of the words before it."""
    if not name.isupper() or not before[-1:].isspace():
        return False
    words = re.findall(r"\w+", before[-200:].replace("'", "").replace("\u2019", ""))[-len(name) :]
    return [word[0].upper() for word in words] == list(name)


def is_question(text: str) -> bool:
    """Return True if `text` begins like a question, or has "?" and a question word."""
    starts = [text, *re.findall(r"\w+", text)] if "?" in text else [text]
    return any(map(begins_as_question, starts))


def operators_in(text: str, first_tag: int | None = None) -> list[int]:
    """Return the positions of the operators in `text`.

    `first_tag` is the position of the first field tag, or None. A question has no operators. It
    ends with the last question mark before that tag; without tags, it is the whole text.
    """
    begin = text.rfind("?", 0, first_tag) + 1
    if first_tag is None:
        begin = len(text) if is_question(text) else 0
    elif not is_question(text[:begin]):
        begin = 0
    unquoted = _QUOTED.sub(lambda quoted: '"' * len(quoted[0]), text)
    return [
        found.start()
        for found in _OPERATOR.finditer(unquoted, begin)
        if not (found[0] == "NOT" and is_auxiliary(text[: found.start()].strip().split(" ")[-1]))
    ]
