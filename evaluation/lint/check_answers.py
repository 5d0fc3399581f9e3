"""Rules for BioASQ's exact and ideal answers.

Source: the guidelines of BioASQ Task 13b (participants-area.bioasq.org): yes or no; up to 5
entities for a factoid question; up to 100 entities of up to 100 characters for a list question; no
synonyms (since BioASQ 5); an ideal answer of at most 200 words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from cluster.text.sentences import sentence_spans
from evaluation.lint.note_problems import Checker, count_words
from serve.formats.bioasq import MAX_ENTITY_CHARS, MAX_FACTOIDS, MAX_IDEAL_WORDS, MAX_LIST


def given(value: Any) -> bool:
    """Return False for null, blank strings and lists of them; True for any other answer."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, list):
        return any(item not in ("", [], [""]) for item in value)
    return value is not None


def check_exact(checker: Checker, value: Any, kind: str | None, place: str) -> Any:
    """Check the exact answer to a question of type `kind`; other types are not checked."""
    if kind == "yesno":
        return _word(checker, value, place)
    if kind in ("factoid", "list"):
        return _entities(checker, value, kind, place)
    return value


def _word(checker: Checker, value: Any, place: str) -> Any:
    word = value.strip().lower() if isinstance(value, str) else None
    known = word in ("yes", "no")
    if value != word or not known:
        mend = f"writes {word}" if known else ""
        checker.note(place, f"must be yes or no, not {value!r:.40}", mend)
    return word if known else value


def _entities(checker: Checker, value: Any, kind: str, place: str) -> Any:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(map(_is_entity, items)):
        checker.note(place, f"must be a list of lists of strings, not {value!r:.60}")
        return value
    groups = [[item] if isinstance(item, str) else item for item in items]
    if groups != value:
        checker.note(place, "must be a list of lists", "makes each entity a list of its own")
    longest = MAX_ENTITY_CHARS if kind == "list" else None
    names = [
        name
        for number, group in enumerate(groups)
        for name in _name(checker, group, longest, f"{place}, entity {number}")
    ]
    limit = MAX_LIST if kind == "list" else MAX_FACTOIDS
    names = checker.first(checker.distinct(names, str.casefold, place), limit, place)
    return [[name] for name in names]


def _is_entity(item: Any) -> bool:
    names = item if isinstance(item, list) else [item]
    return all(isinstance(name, str) for name in names)


def _name(checker: Checker, group: Sequence[str], longest: int | None, place: str) -> list[str]:
    """Return the single name of an entity, or an empty list if `--fix` drops it."""
    names = [name for name in group if name.strip()][:1]
    if not names:
        checker.note(place, "is empty", "drops it")
    elif longest and len(names[0]) > longest:
        checker.note(place, f"{len(names[0])} characters, at most {longest}", "drops it")
        return []
    elif len(group) > 1:
        only = f"{len(group)} synonyms, of which only the first counts"
        checker.note(place, only, "keeps the first")
    return names


def check_ideal(checker: Checker, value: Any, place: str) -> Any:
    """Check the ideal answer. A list of one text, the gold files' form, remains a list."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        checker.note(place, f"must be a string, not {value!r:.40}")
        return value
    if len(texts) > 1:
        checker.note(place, f"{len(texts)} texts; only one is allowed", "keeps the first")
    text = _fit(checker, checker.unmarked(texts[0], place), place)
    return [text] if isinstance(value, list) else text


def _fit(checker: Checker, text: str, place: str) -> str:
    words = count_words(text)
    if words <= MAX_IDEAL_WORDS:
        return text
    ends = [end for _, end in sentence_spans(text)]
    whole = list(takewhile(lambda end: count_words(text[:end]) <= MAX_IDEAL_WORDS, ends))
    mend = "ends it after the last whole sentence within the limit" if whole else ""
    checker.note(place, f"{words} words, at most {MAX_IDEAL_WORDS}", mend)
    return text[: whole[-1]] if whole else text
