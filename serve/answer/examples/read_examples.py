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
        where = f"{path}: question {number}"
        if not isinstance(row, dict):
            raise InputError(f"{where}: must be an object, not {type(row).__name__}")
        example = _example(row, where)
        if example is not None:
            found.append(example)
    return found


def _example(row: Row, where: str) -> FewShotExample | None:
    id_, body, kind = (_text(row, field, where) for field in ("id", "body", "type"))
    where = f"{where} (id {id_:.80})"
    if kind not in _TYPES:
        raise InputError(f"{where}: type {kind!r:.60} is not one of {', '.join(sorted(_TYPES))}")
    if row.get("answerReady", row.get("answer_ready", True)) is False:
        return None
    ideal = next(iter(_golden(row.get("ideal_answer"), f"{where}: ideal_answer")), "")
    exact = _exact(kind, row.get("exact_answer"), f"{where}: exact_answer")
    if not isinstance(ideal, str):
        raise InputError(f"{where}: ideal_answer must hold strings, not {ideal!r:.40}")
    whole_text(ideal, "ideal_answer", where)
    if not ideal.strip() and not exact:
        return None
    return FewShotExample(id_, cast(QuestionType, kind), body, " ".join(ideal.split()), exact)


def _text(row: Row, field: str, where: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {field} must be a string that is not empty, not {value!r:.40}")
    return whole_text(value.strip(), field, where)


def _golden(value: Any, where: str) -> Iterable[Any]:
    """Yield a field's answers, given as values or in objects; skip those with "golden": false."""
    for item in value if isinstance(value, list) else [] if value is None else [value]:
        if not isinstance(item, dict):
            yield item
        elif "answer" not in item:
            raise InputError(f"{where}: an object must hold answer, not {sorted(item)!r:.60}")
        elif item.get("golden", True) is True:
            yield item["answer"]


def _exact(kind: str, value: Any, where: str) -> ExactAnswer:
    if kind == "summary":
        return None
    items = list(_golden(value, where))
    groups = [[item] if isinstance(item, str) else item for item in items]
    if not all(isinstance(g, list) and all(isinstance(n, str) for n in g) for g in groups):
        raise InputError(f"{where}: must be strings or lists of strings, not {value!r:.60}")
    for name in chain(*groups):
        whole_text(name, "a name", where)
    if kind == "yesno":
        words = [trim_name(name).casefold() for group in groups for name in group]
        return next((word for word in words if word in ("yes", "no")), None)
    return settle_names(groups, limit=LIMITS[kind], max_chars=MAX_NAME_CHARS) or None
