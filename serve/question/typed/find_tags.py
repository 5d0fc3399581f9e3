"""Decide which brackets in a question are field tags.

A tag follows its term, as in `Smith J[au]`. Brackets also occur in ordinary text, as in
`benzo[a]pyrene`, `[18F]FDG`, `C[max]`, `drug[s]` or `tumor necrosis factor [TNF]`. Therefore a name
that is not a PubMed tag is only treated as a tag if the text around it looks like a search.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast, get_args

from serve.question.typed.field_names import ELEMENTS, Field, Refused, field_of
from serve.question.typed.find_operators import is_question, operators_in

Kind = Field | Refused

_BRACKETED = re.compile(r"\[([^\[\]]{1,60})\]")
_NAME = re.compile(r"1?[A-Za-z][A-Za-z /&-]{0,50}")
_QUALIFIER = re.compile(r"~.*|\w+")
_ROMAN = re.compile(r"[IVX]+")
_STOP = re.compile(r"\s*(?:$|[);,]|\?\s*$|(?:AND|OR|NOT)(?![^\s(\"]))")
_WORD_ON = re.compile(r"(?!(?:AND|OR|NOT)\b)[\w+-]")
_STEM = re.compile(r"(?<![\w-])[\w-]+$")
# Symbols such as C[max], K[ATP] and Fe[III] have fewer letters than a term with a tag.
_SHORTEST_STEM, _LONGEST_STEM = 3, 60
_PREFIX = re.compile(r"poly|[a-z]{0,8}cyclo|spiro|bis|tris|tetrakis", re.IGNORECASE)
_SHORT_NAME = 3
# An unknown name after a space is a tag only after a short term, as titles end in "[corrected]".
_MOST_TERM_WORDS = 3


@dataclass(frozen=True, slots=True)
class Tag:
    """A field tag: its position in the text, its kind, and the tag as it was written.

    `kind` is the field, or the reason why the tag cannot be applied. The span includes the white
    space before the tag.
    """

    begin: int
    end: int
    kind: Kind
    written: str

    @property
    def field(self) -> Field | None:
        """The field to search in; None for a tag that cannot be applied."""
        return None if self.kind in get_args(Refused) else cast("Field", self.kind)


def tags_in(text: str) -> list[Tag]:
    """Return the field tags of `text`, in order."""
    brackets = [(m, *_named(m[1])) for m in _BRACKETED.finditer(text)]
    certain = [(m, kind) for m, kind, sure in brackets if kind and sure and _is_tag(text, m)]
    searching = bool(certain) or (bool(operators_in(text)) and not is_question(text))
    found = certain + [
        (m, kind)
        for m, kind, sure in brackets
        if kind and not sure and _is_unknown_tag(text, m, searching)
    ]
    return [
        Tag(len(text[: m.start()].rstrip()), m.end(), kind, m[0])
        for m, kind in sorted(found, key=lambda one: one[0].start())
    ]


def _named(content: str) -> tuple[Kind | None, bool]:
    """Return (kind of tag that `content` may be or None, whether it is known to PubMed)."""
    content = re.sub("[\u2010-\u2014]", "-", content)
    if ":" not in content:
        content = content.replace("~", ":~", 1)
    name, colon, qualifier = (part.strip() for part in content.partition(":"))
    if not _NAME.fullmatch(name) or (colon and not _QUALIFIER.fullmatch(qualifier)):
        return None, False
    field, qualifier = field_of(name), qualifier.casefold()
    if field is None:
        known = qualifier == "noexp" or qualifier.startswith("~")
        return (None if colon and not known else "unknown"), known
    if qualifier.startswith("~"):
        return "proximity", True
    if not colon or field == "unsupported" or (qualifier == "noexp" and field in ("mh", "pt")):
        return field, True
    return "qualified", True


def _is_tag(text: str, bracket: re.Match[str]) -> bool:
    """Return True if a bracket with a tag's name is a tag and not a symbol or a locant."""
    name, before = bracket[1].strip(), text[: bracket.start()]
    if _goes_on(text, bracket) and len(name) <= _SHORT_NAME:
        return False
    if name in ELEMENTS:
        if not before.strip():
            return False
        attached = not before[-1].isspace() or before.rstrip().endswith('"')
        at_stop = _STOP.match(text, bracket.end()) is not None
        return attached or (at_stop and not is_question(text))
    if _ROMAN.fullmatch(name):
        # [VI] is the tag for a volume after a number, but not in chromium[VI] or Cr[VI].
        return before.rstrip().endswith(('"', *"0123456789"))
    return not _abbreviates(name, before)


def _is_unknown_tag(text: str, bracket: re.Match[str], searching: bool) -> bool:
    """Return True if a bracket whose name PubMed does not have is placed like a tag.

    `searching` is True if the text has other tags or operators.
    """
    name, before = bracket[1].strip(), text[: bracket.start()]
    term = before.rstrip()
    if not term or _goes_on(text, bracket) or _abbreviates(name, before) or not _is_cased(name):
        return False
    if term.endswith('"'):
        return True
    if is_question(text) and not searching:
        return False
    at_stop = _STOP.match(text, bracket.end()) is not None
    if len(term) < len(before):
        short = name.islower() and name.isalpha() and len(term.split()) <= _MOST_TERM_WORDS
        return at_stop and (searching or short)
    if term.endswith(")"):
        return searching
    stem = _STEM.search(term[-_LONGEST_STEM:])
    if stem is None or len(stem[0]) < _SHORTEST_STEM or _PREFIX.fullmatch(stem[0]):
        return False
    return at_stop or any(letter.islower() for letter in stem[0])


def _is_cased(name: str) -> bool:
    """Return True if a name has a tag's case, and is no numeral, unit or plural ending."""
    words = re.split(r"[ /-]+", name)
    if len(name) < 2 or _ROMAN.fullmatch(name) or name == "sic":
        return False
    if "/" in name and min(map(len, words)) <= _SHORT_NAME:
        return all(map(field_of, words))
    return all(word.islower() or word.isupper() or word.istitle() for word in words)


def _goes_on(text: str, bracket: re.Match[str]) -> bool:
    """Return True if a word follows the bracket without a space, as in benzo[a]pyrene."""
    return _WORD_ON.match(text, bracket.end()) is not None


def _abbreviates(name: str, before: str) -> bool:
    """Return True if a name in capitals has the initials of the words before it."""
    if not name.isupper() or not before[-1:].isspace():
        return False
    words = re.findall(r"\w+", before[-200:].replace("'", "").replace("\u2019", ""))[-len(name) :]
    return [word[0].upper() for word in words] == list(name)
