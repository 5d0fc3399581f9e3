"""Convert the field tags of a question to filters, or explain what filters cannot express."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from typing import Any

from cluster.answers import Interpretation
from cluster.errors import InputError, cut
from cluster.index.filters.filters import FLAGS, Filters
from cluster.index.filters.read_dates import read_dates
from serve.question.field_tags.field_names import LANGUAGES, publication_type
from serve.question.field_tags.find_tags import operators_in
from serve.question.field_tags.parse_tags import Clause, Tagged, join_words, parse_tags
from serve.question.find_headings import mapped_note
from serve.question.understand_question import Heading

RANKED = (
    "articles are ranked by the words and need not contain all of them: {} between words is not "
    "applied"
)
WORDS = (
    "[tiab] and other text fields search titles and abstracts, as all words do; none is required"
)
YEARS = "dates begin with a year, so the last years ({}) were read as {} and later"
NARROW = "MeSH headings are matched exactly, without the narrower ones below them"
_HUMANS = "D006801"
_FLAG_FILTERS = {
    "human": "humans",
    "humans": "humans",
    "hasabstract": "has_abstract",
    "fha": "has_abstract",
}
LAST_YEARS = re.compile(r"(?:y_|last )(\d{1,3})(?: years?)?", re.IGNORECASE)
# How `joined_filters` combines two values of a field; other fields must have one value.
_COMBINED: dict[str, Any] = {
    "year_from": max,
    "year_to": min,
    "until": min,
    "all_of": lambda given, read: (*given, *read),
}
# Kinds of conditions that are not fields of Filters.
_WORDS, _DATES = "words", "dates"
_UNKNOWN = {
    "mh": "not a MeSH heading that this index knows; give it without a subheading, or leave out "
    "[mh] to search for the words",
    "pt": "not a publication type of PubMed; give one such as Review or Randomized Controlled "
    "Trial",
    "la": "not a language of PubMed; give one such as english or eng",
    "filter": "not a filter here; the supported ones are humans, hasabstract, y_1, y_5 and y_10, "
    "languages and publication types",
}
_IDENTIFIER = "PMIDs, PMCIDs and DOIs with other words or tags cannot be searched; give them alone"


class UnknownHeadingError(InputError):
    """A text with the field tag [mh] that is not a MeSH heading."""

    def __init__(self, message: str, value: str) -> None:
        super().__init__(message, value)
        self.value = value

    def __str__(self) -> str:
        return str(self.args[0])


def read_tags(
    body: str, headings: Mapping[str, Heading], today: date | None = None
) -> Interpretation | None:
    """Return the remaining words, the filters and notes on both; None without tags or operators.

    `headings` has those of `heading_candidates` that are MeSH headings. `today` is the reference
    date for "the last 5 years" (default: the current UTC date). Raises InputError, which names the
    part and the fix; UnknownHeadingError for the value of [mh].
    """
    parsed = parse_tags(body, headings.get)
    if parsed is None:
        operators = [re.match(r"AND|OR", body[at:]) for at in operators_in(body)]
        unapplied = {RANKED.format(found[0]): None for found in operators if found}
        if unapplied and not re.search(r"\w", re.sub(r"\b(?:AND|OR)\b", "", body)):
            raise InputError("question: only AND and OR; add the words to search for")
        return Interpretation(body, Filters(), notes=tuple(unapplied)) if unapplied else None
    clauses, has_and = parsed
    texts = [clause for clause in clauses if isinstance(clause[0], str)]
    ignored = "OR" if any(len(text) > 1 for text in texts) else "AND"
    notes = [RANKED.format(ignored)] if ignored == "OR" or (has_and and len(texts) > 1) else []
    reader = _Reader(headings, today or datetime.now(UTC).date())
    for clause in clauses:
        reader.add(clause)
    filters = reader.filters()
    # If there are only headings, search for their words.
    words = join_words(reader.words or reader.topics)
    if not any(c.isalnum() for c in words):
        raise InputError(
            "question: only field tags; add words to search for, as in "
            "metformin AND Smith J[au] AND 2020:2024[dp]"
        )
    return Interpretation(words, filters, notes=(*notes, *reader.notes))


class _Reader:
    """Collects the clauses of one question."""

    def __init__(self, headings: Mapping[str, Heading], today: date) -> None:
        self._headings = headings
        self._today = today
        self._groups: dict[str, list[tuple[str, ...]]] = {}
        self.words: list[str] = []
        self.topics: list[str] = []
        # A dictionary removes duplicate notes and preserves their order.
        self.notes: dict[str, None] = {}

    def add(self, clause: Clause) -> None:
        """Add alternative words, or alternative values of one field."""
        kinds, values = zip(*map(self._condition, clause), strict=True)
        [kind, *others] = set(kinds)
        if others:
            raise InputError(
                "question: OR between different fields, OR between different filters and OR "
                "between a field and words cannot be applied; use it between values of one field, "
                "in parentheses"
            )
        if kind == _WORDS:
            self.words += values
        elif values == (_HUMANS,):
            self._groups["humans"] = [values]
        else:
            self._groups.setdefault(kind, []).append(values)

    def filters(self) -> Filters:
        """Return the filters. Raises InputError for values that cannot be combined."""
        found: dict[str, Any] = {}
        all_of = []
        for name, groups in self._groups.items():
            if len(groups) > 1 and any(len(group) > 1 for group in groups):
                raise InputError(
                    f"question: {name.replace('_', ' ')} joined by both AND and OR cannot be "
                    "applied; use one of them"
                )
            values = tuple(value for group in groups for value in group)
            if name == _DATES:
                found |= self._dates(values)
            elif name in FLAGS:
                found[name] = True
            else:
                found[name] = values
                all_of += [name] if len(groups) > 1 else []
        return Filters(**found, all_of=tuple(all_of))

    def _condition(self, item: Tagged | str) -> tuple[str, str]:
        """Return the kind of condition (a field of Filters, _DATES or _WORDS) and its value.

        Raises InputError if the field does not have the value.
        """
        if isinstance(item, str):
            return _WORDS, item
        value, folded = item.value, item.value.casefold()
        match item.field:
            case "text":
                self.notes[WORDS] = None
                return _WORDS, value
            case "au":
                return "authors", value
            case "ta":
                return "journals", value
            case "filter" if folded in _FLAG_FILTERS:
                return _FLAG_FILTERS[folded], ""
            case "mh" if folded == "humans":
                return "mesh", _HUMANS
            case "mh" if heading := self._headings.get(value):
                self.notes[NARROW] = None
                if note := mapped_note(value, heading):
                    self.notes[note] = None
                self.topics.append(value)
                return "mesh", heading.ui
            case "dp":
                return _DATES, value
            case "filter" if LAST_YEARS.fullmatch(value):
                return _DATES, value
            case "pt" | "filter" if known := publication_type(value):
                return "publication_types", known
            case "la" | "filter" if code := LANGUAGES.get(folded):
                return "languages", code
            case "la" if re.fullmatch("[a-z]{3}", folded):
                return "languages", folded
        said = f"question, {cut(value)}[{item.field}]: {_UNKNOWN.get(item.field, _IDENTIFIER)}"
        raise UnknownHeadingError(said, value) if item.field == "mh" else InputError(said)

    def _dates(self, values: tuple[str, ...]) -> dict[str, Any]:
        if len(values) > 1:
            raise InputError(
                "question: several dates of publication cannot be applied; give one range, as in "
                "2015:2024[dp]"
            )
        if last := LAST_YEARS.fullmatch(values[0]):
            first = self._today.year - int(last[1])
            self.notes[YEARS.format(int(last[1]), first)] = None
            return {"year_from": first}
        return read_dates(values[0], f"question, {cut(values[0])}[dp]")


def joined_filters(given: Filters, read: Filters) -> Filters:
    """Combine two filters; raises InputError if they set one field to different values.

    Ranges of years are intersected.
    """
    values: dict[str, Any] = {}
    for one in fields(Filters):
        here, there = getattr(given, one.name), getattr(read, one.name)
        if here in (one.default, there):
            values[one.name] = there
        elif there != one.default and one.name in _COMBINED:
            values[one.name] = _COMBINED[one.name](here, there)
        elif there != one.default:
            raise InputError(
                f"filters.{one.name}: the question sets another value by a field tag; give it in "
                "one place"
            )
    return replace(given, **values)
