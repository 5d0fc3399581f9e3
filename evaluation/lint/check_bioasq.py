"""Rules for BioASQ task b runs, and for Synergy runs, which have the same form.

Source: the guidelines of Task 13b and of Synergy 2025 (participants-area.bioasq.org): yes or no; up
to 5 entities for a factoid question; up to 100 entities of up to 100 characters for a list
question; no synonyms (since BioASQ 5); an ideal answer of at most 200 words. In Synergy only
questions marked `answerReady` have answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from cluster.text.sentences import sentence_spans
from evaluation.bioasq.read_bioasq import TYPES
from evaluation.lint.check_material import check_documents, check_snippets
from evaluation.lint.note_problems import Asked, Checked, Checker, count_words
from serve.formats.bioasq import MAX_ENTITY_CHARS, MAX_FACTOIDS, MAX_IDEAL_WORDS, MAX_LIST

if TYPE_CHECKING:
    from evaluation.find_citations import CitationLookup


ANSWERS = ("exact_answer", "ideal_answer")
Row = dict[str, Any]


def check_bioasq(
    rows: Sequence[Any],
    questions: Mapping[str, Asked] | None = None,
    lookup: CitationLookup | None = None,
    *,
    drop_unknown: bool = False,
    synergy: bool = False,
) -> Checked:
    """Check the `questions` of a run and return repaired copies; `rows` are not changed."""
    checker = Checker(lookup, drop_unknown=drop_unknown)
    objects = [row for row in rows if isinstance(row, dict)]
    checker.ids([row["id"] for row in objects if isinstance(row.get("id"), str)], questions)
    said = [field for field in ANSWERS if any(given(row.get(field)) for row in objects)]
    mended: list[Any] = []
    for number, row in enumerate(rows):
        where = f"question {number}"
        if not isinstance(row, dict):
            checker.note(where, f"must be an object, not {row!r:.40}")
            mended.append(row)
            continue
        asked = _asked(checker, row, where, questions or {})
        where = f"{where} (id {row.get('id')!s:.80})"
        new = _material(checker, row, where)
        wanted = dict.fromkeys(said, "other questions have one")
        if synergy:
            why = "the question is answerReady"
            wanted = dict.fromkeys(ANSWERS, why) if asked.answer_ready else {}
            if asked.answer_ready is False:
                _remove(checker, new, ANSWERS, where, "the question is not marked answerReady")
        mended.append(_answers(checker, new, asked.type, wanted, where))
    return Checked(mended, tuple(checker.problems))


def answer_ready(row: Mapping[str, Any]) -> bool | None:
    """Return Synergy's flag, or None if `row` does not have it."""
    value = row.get("answerReady", row.get("answer_ready"))
    return value if isinstance(value, bool) else None


def _asked(checker: Checker, row: Row, place: str, questions: Mapping[str, Asked]) -> Asked:
    """Return the row's type and readiness, from the questions file if it has the question."""
    id_, kind = row.get("id"), row.get("type")
    if not isinstance(id_, str) or not id_.strip():
        checker.note(place, f"id must be a string that is not empty, not {id_!r:.40}")
        id_ = ""
    where = f"{place} (id {id_:.80}), type"
    asked = questions.get(id_, Asked())
    if kind is None:
        if asked.type is None:
            checker.note(where, "is missing; name a file of questions with --questions")
    elif kind not in TYPES:
        checker.note(where, f"{kind!r:.40} is not one of {', '.join(TYPES)}")
    elif asked.type not in (None, kind):
        checker.note(where, f"is {kind}, the questions file says {asked.type}")
    ready = answer_ready(row) if asked.answer_ready is None else asked.answer_ready
    return Asked(asked.type or (kind if isinstance(kind, str) else None), ready)


def _material(checker: Checker, row: Row, where: str) -> Row:
    """Return the row with its documents and snippets repaired."""
    mended = dict(row)
    documents = checker.items(row, "documents", where)
    if documents is not None:
        documents = mended["documents"] = check_documents(checker, documents, where)
    snippets = checker.items(row, "snippets", where)
    if snippets is not None:
        mended["snippets"] = check_snippets(checker, snippets, documents or (), where)
    return mended


def _answers(
    checker: Checker, row: Row, kind: str | None, wanted: Mapping[str, str], place: str
) -> Row:
    """Return the row with its answers repaired; `wanted` says why an answer is required."""
    if kind == "summary":
        _remove(checker, row, ("exact_answer",), place, "a summary question has none")
    for field in ANSWERS:
        where = f"{place}, {field}"
        if not given(row.get(field)):
            if field in wanted and (kind, field) != ("summary", "exact_answer"):
                checker.note(where, f"is missing, but {wanted[field]}")
        elif field == "exact_answer":
            row[field] = check_exact(checker, row[field], kind, where)
        else:
            row[field] = check_ideal(checker, row[field], where)
    return row


def _remove(checker: Checker, row: Row, fields: Sequence[str], where: str, why: str) -> None:
    for field in fields:
        if given(row.get(field)):
            checker.note(f"{where}, {field}", f"is given, but {why}", "removes it")
            del row[field]


def given(value: Any) -> bool:
    """Return False for null, blank strings and lists of them; True for any other answer."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, list):
        return any(item not in ("", [], [""]) for item in value)
    return value is not None


def check_exact(checker: Checker, value: Any, kind: str | None, where: str) -> Any:
    """Check the exact answer to a question of type `kind`; other types are not checked."""
    if kind == "yesno":
        return _word(checker, value, where)
    if kind in ("factoid", "list"):
        return _entities(checker, value, kind, where)
    return value


def _word(checker: Checker, value: Any, where: str) -> Any:
    word = value.strip().lower() if isinstance(value, str) else None
    known = word in ("yes", "no")
    if value != word or not known:
        mend = f"writes {word}" if known else ""
        checker.note(where, f"must be yes or no, not {value!r:.40}", mend)
    return word if known else value


def _entities(checker: Checker, value: Any, kind: str, where: str) -> Any:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(map(_is_entity, items)):
        checker.note(where, f"must be a list of lists of strings, not {value!r:.60}")
        return value
    groups = [[item] if isinstance(item, str) else item for item in items]
    if groups != value:
        checker.note(where, "must be a list of lists", "makes each entity a list of its own")
    longest = MAX_ENTITY_CHARS if kind == "list" else None
    names = [
        name
        for number, group in enumerate(groups)
        for name in _name(checker, group, longest, f"{where}, entity {number}")
    ]
    limit = MAX_LIST if kind == "list" else MAX_FACTOIDS
    names = checker.first(checker.distinct(names, str.casefold, where), limit, where)
    return [[name] for name in names]


def _is_entity(item: Any) -> bool:
    names = item if isinstance(item, list) else [item]
    return all(isinstance(name, str) for name in names)


def _name(checker: Checker, group: Sequence[str], longest: int | None, where: str) -> list[str]:
    """Return the single name of an entity, or an empty list if `--fix` drops it."""
    names = [name for name in group if name.strip()][:1]
    if not names:
        checker.note(where, "is empty", "drops it")
    elif longest and len(names[0]) > longest:
        checker.note(where, f"{len(names[0])} characters, at most {longest}", "drops it")
        return []
    elif len(group) > 1:
        only = f"{len(group)} synonyms, of which only the first counts"
        checker.note(where, only, "keeps the first")
    return names


def check_ideal(checker: Checker, value: Any, where: str) -> Any:
    """Check the ideal answer. A list of one text, the gold files' form, remains a list."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        checker.note(where, f"must be a string, not {value!r:.40}")
        return value
    if len(texts) > 1:
        checker.note(where, f"{len(texts)} texts; only one is allowed", "keeps the first")
    text = _fit(checker, checker.unmarked(texts[0], where), where)
    return [text] if isinstance(value, list) else text


def _fit(checker: Checker, text: str, where: str) -> str:
    words = count_words(text)
    if words <= MAX_IDEAL_WORDS:
        return text
    ends = [end for _, end in sentence_spans(text)]
    whole = list(takewhile(lambda end: count_words(text[:end]) <= MAX_IDEAL_WORDS, ends))
    mend = "ends it after the last whole sentence within the limit" if whole else ""
    checker.note(where, f"{words} words, at most {MAX_IDEAL_WORDS}", mend)
    return text[: whole[-1]] if whole else text
