"""Decide which brackets in a question are field tags.

A tag follows its term, as in `Smith J[au]`. Brackets also occur in ordinary text, as in
`benzo[a]pyrene`, `[18F]FDG`, `C[max]`, `drug[s]` or `tumor necrosis factor [TNF]`. Therefore a name
that is not a PubMed tag is only treated as a tag if the text around it looks like a search.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from serve.question.typed.field_names import ELEMENTS, field_of
from serve.question.typed.find_operators import is_question, operators_in

_BRACKETED = re.compile(r"\[([^\[\]]{1,60})\]")
_NAME = re.compile(r"1?[A-Za-z][A-Za-z /&-]{0,50}")
_QUALIFIER = re.compile(r"~.*|\w+")
_ROMAN = re.compile(r"[IVX]+")
_STOP = re.compile(r"\s*(?:$|[);,]|\?\s*$|(?:AND|OR|NOT)(?![^\s(\"]))")
# A word that follows without a space, as in benzo[a]pyrene.
_WORD_ON = re.compile(r"(?!(?:AND|OR|NOT)\b)[\w+-]")
# Symbols such as C[max], K[ATP] and Fe[III] have fewer letters than a term with a tag.
_STEM = re.compile(r"(?<![\w-])[\w-]{3,}$")
_LONGEST_STEM = 60
_PREFIX = re.compile(r"poly|[a-z]{0,8}cyclo|spiro|bis|tris|tetrakis", re.IGNORECASE)
_SHORT_NAME = 3


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
    brackets = [(m, *_named(m[1])) for m in _BRACKETED.finditer(text)]
    searching = bool(operators_in(text)) and not is_question(text)
    searching |= any(known and _is_tag(text, m, known, False) for m, _, known in brackets)
    return [
        Tag(len(text[: m.start()].rstrip()), m.end(), kind, m[0])
        for m, kind, known in brackets
        if kind and _is_tag(text, m, known, searching)
    ]


def _named(content: str) -> tuple[str, bool]:
    """Return (kind of tag that `content` may be or "", whether it is known to PubMed)."""
    content = re.sub("[\u2010-\u2014]", "-", content)
    if ":" not in content:
        content = content.replace("~", ":~", 1)
    name, colon, qualifier = (part.strip() for part in content.partition(":"))
    if not _NAME.fullmatch(name) or (colon and not _QUALIFIER.fullmatch(qualifier)):
        return "", False
    field, qualifier = field_of(name), qualifier.casefold()
    is_known_qualifier = qualifier == "noexp" or qualifier.startswith("~")
    if field is None:
        return "" if colon and not is_known_qualifier else "unknown", is_known_qualifier
    applies = not colon or (qualifier == "noexp" and field in ("mh", "pt", "unsupported"))
    return field if applies else "qualified", True


def _is_tag(text: str, bracket: re.Match[str], known: bool, searching: bool) -> bool:
    """Return True if a bracket is a tag and not a symbol, a locant or an abbreviation.

    `known` is True if PubMed has its name. Other names must be placed like a tag. `searching` is
    True if the text has other tags or operators.
    """
    name, before = bracket[1].strip(), text[: bracket.start()]
    term = before.rstrip()
    is_quoted, is_attached = term.endswith('"'), term == before
    is_at_stop = _STOP.match(text, bracket.end()) is not None
    if _WORD_ON.match(text, bracket.end()) and not (known and len(name) > _SHORT_NAME):
        return False
    if _ROMAN.fullmatch(name):
        # [VI] is the tag for a volume after a number, but not in chromium[VI] or Cr[VI].
        return known and term.endswith(('"', *"0123456789"))
    if known and name in ELEMENTS:
        ends_part = is_at_stop and not is_question(text)
        return bool(term) and (is_attached or is_quoted or ends_part)
    if _abbreviates(name, before):
        return False
    if known or not term or not _is_cased(name):
        return known
    if is_quoted:
        return True
    if not is_attached or term.endswith(")"):
        return searching and is_at_stop
    stem = _STEM.search(term[-_LONGEST_STEM:])
    if stem is None or _PREFIX.fullmatch(stem[0]) or (is_question(text) and not searching):
        return False
    return is_at_stop or any(letter.islower() for letter in stem[0])


def _is_cased(name: str) -> bool:
    """Return True if a name has a tag's case, and is no numeral, unit or plural ending."""
    words = re.split(r"[ /-]+", name)
    if len(name) < 2 or name == "sic":
        return False
    if "/" in name and min(map(len, words)) <= _SHORT_NAME:
        return all(map(field_of, words))
    return all(word.islower() or word.isupper() or word.istitle() for word in words)


def _abbreviates(name: str, before: str) -> bool:
    """Return True if a name in capitals has the initials of the words before it."""
    if not name.isupper() or not before[-1:].isspace():
        return False
    words = re.findall(r"\w+", before[-200:].replace("'", "").replace("\u2019", ""))[-len(name) :]
    return [word[0].upper() for word in words] == list(name)
