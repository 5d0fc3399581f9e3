"""Rules for BioASQ task b runs, and for Synergy runs, which have the same form.

Source: the guidelines of Task 13b and of Synergy 2025 (participants-area.bioasq.org). In Synergy
only questions marked `answerReady` have answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluation.bioasq.read_bioasq import TYPES
from evaluation.lint.check_answers import check_exact, check_ideal, given
from evaluation.lint.check_material import check_documents, check_snippets
from evaluation.lint.note_problems import Asked, Checked, Checker

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
        place = f"question {number}"
        if not isinstance(row, dict):
            checker.note(place, f"must be an object, not {row!r:.40}")
            mended.append(row)
            continue
        asked = _asked(checker, row, place, questions or {})
        place = f"{place} (id {row.get('id')!s:.80})"
        new = _material(checker, row, place)
        wanted = dict.fromkeys(said, "other questions have one")
        if synergy:
            why = "the question is answerReady"
            wanted = dict.fromkeys(ANSWERS, why) if asked.answer_ready else {}
            if asked.answer_ready is False:
                _remove(checker, new, ANSWERS, place, "the question is not marked answerReady")
        mended.append(_answers(checker, new, asked.type, wanted, place))
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
        checker.note(where, f"{kind!r:.40} is none of {', '.join(TYPES)}")
    elif asked.type not in (None, kind):
        checker.note(where, f"is {kind}, the questions file says {asked.type}")
    ready = answer_ready(row) if asked.answer_ready is None else asked.answer_ready
    return Asked(asked.type or (kind if isinstance(kind, str) else None), ready)


def _material(checker: Checker, row: Row, place: str) -> Row:
    """Return the row with its documents and snippets repaired."""
    mended = dict(row)
    documents = checker.items(row, "documents", place)
    if documents is not None:
        documents = mended["documents"] = check_documents(checker, documents, place)
    snippets = checker.items(row, "snippets", place)
    if snippets is not None:
        mended["snippets"] = check_snippets(checker, snippets, documents or (), place)
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


def _remove(checker: Checker, row: Row, fields: Sequence[str], place: str, why: str) -> None:
    for field in fields:
        if given(row.get(field)):
            checker.note(f"{place}, {field}", f"is given, but {why}", "removes it")
            del row[field]
