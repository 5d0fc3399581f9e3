"""Read few-shot examples from Synergy feedback and BioASQ gold files (paper 000, section 3.3.1).

A question is used if it has an answer and its `answerReady` is not false. Exact answers are
normalised: a word for yes/no, a list of lists of names for the other types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast, get_args

from cluster.answers import ExactAnswer, QuestionType
from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from serve.answer.names.group_names import LIMITS
from serve.answer.names.settle_exact import settle_names, trim_name
from serve.formats.bioasq import whole_text

MAX_NAME_CHARS = 300
_TYPES = frozenset(get_args(QuestionType)) - {"unknown"}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FewShotExample:
    """Question with expert-approved answers; a missing `ideal` is "", a missing `exact` None."""

    id: str
    type: QuestionType
    body: str
    ideal: str
    exact: ExactAnswer


def curate_examples(path: Path) -> list[FewShotExample]:
    """Return the examples of a file in their order.

    Raises InputError naming the file, the question and the field if the format is invalid.
    """
    found = []
    for number, row in enumerate(read_rows(path)):
        place = f"{path}: question {number}"
        if not isinstance(row, dict):
            raise InputError(f"{place}: must be an object, not {type(row).__name__}")
        example = _example(row, place)
        if example is not None:
            found.append(example)
    return found


def _example(row: Row, place: str) -> FewShotExample | None:
    id_, body, kind = (_text(row, field, place) for field in ("id", "body", "type"))
    place = f"{place} (id {id_:.80})"
    if kind not in _TYPES:
        raise InputError(f"{place}: type {kind!r:.60} is none of {', '.join(sorted(_TYPES))}")
    if row.get("answerReady", row.get("answer_ready", True)) is False:
        return None
    ideal = next(iter(_golden(row.get("ideal_answer"), f"{place}: ideal_answer")), "")
    exact = _exact(kind, row.get("exact_answer"), f"{place}: exact_answer")
    if not isinstance(ideal, str):
        raise InputError(f"{place}: ideal_answer must hold strings, not {ideal!r:.40}")
    whole_text(ideal, "ideal_answer", place)
    if not ideal.strip() and not exact:
        return None
    return FewShotExample(id_, cast(QuestionType, kind), body, " ".join(ideal.split()), exact)


def _text(row: Row, field: str, place: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{place}: {field} must be a string that is not empty, not {value!r:.40}")
    return whole_text(value.strip(), field, place)


def _golden(value: Any, place: str) -> Iterable[Any]:
    """Yield a field's answers, given as values or in objects; skip those with "golden": false."""
    for item in value if isinstance(value, list) else [] if value is None else [value]:
        if not isinstance(item, dict):
            yield item
        elif "answer" not in item:
            raise InputError(f"{place}: an object must hold answer, not {sorted(item)!r:.60}")
        elif item.get("golden", True) is True:
            yield item["answer"]


def _exact(kind: str, value: Any, place: str) -> ExactAnswer:
    if kind == "summary":
        return None
    items = list(_golden(value, place))
    groups = [[item] if isinstance(item, str) else item for item in items]
    if not all(isinstance(g, list) and all(isinstance(n, str) for n in g) for g in groups):
        raise InputError(f"{place}: must be strings or lists of strings, not {value!r:.60}")
    for name in chain(*groups):
        whole_text(name, "a name", place)
    if kind == "yesno":
        words = [trim_name(name).casefold() for group in groups for name in group]
        return next((word for word in words if word in ("yes", "no")), None)
    return settle_names(groups, limit=LIMITS[kind], max_chars=MAX_NAME_CHARS) or None
