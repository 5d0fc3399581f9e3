"""Read text, numbers and dates from elements of PubMed's XML."""

from __future__ import annotations

import html
import re
from typing import TypeAlias

from lxml import etree

Element: TypeAlias = etree._Element
# NLM's PMIDs have at most eight digits; nine still fit 32 bits.
_NUMBER = re.compile(r"0*([1-9][0-9]{0,8})")
_ENTITY = etree.Entity
# Other notations of the formula before them in MathML, such as TeX.
_ANNOTATIONS = ("annotation", "annotation-xml")
_XML_SPACES = re.compile(r"[ \t\r\n]+")
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
# fmt: off
# Months of the seasons, from PubMed Help: winter January, spring April, summer July, fall October.
_MONTH_NUMBERS = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
    "win": 1, "spr": 4, "sum": 7, "fal": 10, "aut": 10,
}
# fmt: on
# The spelling in most records, which is looked up without a regular expression.
_MONTH_NAMES = {name.capitalize(): number for name, number in _MONTH_NUMBERS.items()}
_MONTH = re.compile(rf"\b({'|'.join(_MONTH_NUMBERS)})", re.IGNORECASE)


def number_fault(where: str, element: Element) -> str:
    """Return why `element` at `where` is not a valid number, with up to 40 of its characters."""
    return f"{where} is {read_text(element)[:40]!r}, not a positive integer of at most 9 digits"


def read_number(element: Element) -> int | None:
    """Return the element's positive integer of at most 9 digits, or None for other text."""
    return parse_number(read_text(element))


def parse_number(text: str) -> int | None:
    """Return `text` as a positive integer of at most 9 digits, or None."""
    if len(text) <= 9 and text.isdigit() and text.isascii():
        return int(text) or None
    match = _NUMBER.fullmatch(text)
    return int(match[1]) if match else None


def read_text(element: Element) -> str:
    """Return the text of an element and its inline markup, with white space collapsed.

    Only XML white space is collapsed; other characters, such as a no-break space, are kept.
    """
    text = _inner_text(element) if len(element) else element.text
    if not text:
        return ""
    # Most texts are a single word, which needs no search for white space.
    if text.isalnum():
        return text
    # These searches are much cheaper than the substitution, which is rarely needed.
    if "  " in text or "\n" in text or "\t" in text or "\r" in text:
        text = _XML_SPACES.sub(" ", text)
    return text.strip(" ")


def _inner_text(element: Element) -> str:
    parts = [element.text]
    for inner in element:
        # A reference to an entity. The DTD is never loaded, but NLM's entities are those of HTML.
        if inner.tag is _ENTITY:
            parts.append(html.unescape(inner.text or ""))
        elif not (_is_annotation(inner) and any(map(str.strip, filter(None, parts)))):
            parts.append(_inner_text(inner) if len(inner) else inner.text)
        parts.append(inner.tail)
    return "".join([part for part in parts if part])


def _is_annotation(element: Element) -> bool:
    # The name is local, as the prefix may be bound to a namespace or not.
    return re.split("[}:]", str(element.tag))[-1] in _ANNOTATIONS


def texts_of(parent: Element, tag: str) -> tuple[str, ...]:
    """Return the texts of the children with this tag, without empty ones."""
    # Comparing the tag of each child is faster than iterchildren with a filter.
    return tuple([text for each in parent if each.tag == tag and (text := read_text(each))])


def year_and_month(date: Element) -> tuple[int | None, int | None]:
    """Return the year and month of a date; of a range such as `2000 Nov-Dec`, the first."""
    parts = {part.tag: read_text(part) for part in date}
    free = parts.get("MedlineDate", "")
    year = _YEAR.search(parts.get("Year") or free)
    return int(year[0]) if year else None, _month(parts.get("Month") or parts.get("Season") or free)


def _month(text: str) -> int | None:
    if text in _MONTH_NAMES:
        return _MONTH_NAMES[text]
    number = parse_number(text)
    if number is not None:
        return number if number <= 12 else None
    name = _MONTH.search(text)
    return _MONTH_NUMBERS[name[1].lower()] if name else None
