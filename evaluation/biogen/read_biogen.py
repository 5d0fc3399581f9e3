"""Read TREC BioGen run files, tasks A and B (2025), and validate their JSON.

Fields are those of the track's validation programs (trec-biogen/starter-kit-2025,
`task_a_validation.py` and `task_b_validation.py`). A file is JSON lines or one JSON list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cluster.errors import InputError
from cluster.parse_json import parse_json
from cluster.read_given import read_given


@dataclass(frozen=True, slots=True)
class Grounded:
    """Task A: a given sentence, its given PMIDs, and the PMIDs that the run adds."""

    text: str
    existing: tuple[int, ...]
    supported: tuple[int, ...]
    contradicted: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cited:
    """Task B: a sentence of the run's answer with its PMIDs."""

    text: str
    pmids: tuple[int, ...]


TaskA = Mapping[str, tuple[Grounded, ...]]
TaskB = Mapping[str, tuple[Cited, ...]]
Row = Mapping[str, Any]
Read = TypeVar("Read")


def read_task_a(
    path: Path, topics: Collection[str] | None = None
) -> dict[str, tuple[Grounded, ...]]:
    """Read a task A run: the sentences of each `qa_id`, in file order.

    `contradicting_citations` is accepted for `contradicted_citations`, as in the track. Raises
    InputError, naming the file, the record and the field, for invalid content, for a second answer
    to an id, and, if `topics` are given, for an id that is not among them.
    """
    return _read(path, "qa_id", "answer", _grounded, topics)


def read_task_b(path: Path, topics: Collection[str] | None = None) -> dict[str, tuple[Cited, ...]]:
    """Read a task B run: the sentences of each `topic_id`. Raises the errors of `read_task_a`."""
    return _read(path, "topic_id", "responses", _cited, topics)


def _read(
    path: Path,
    id_field: str,
    list_field: str,
    read: Callable[[Row, str], Read],
    topics: Collection[str] | None,
) -> dict[str, tuple[Read, ...]]:
    found: dict[str, tuple[Read, ...]] = {}
    for place, row in records(path):
        id_ = id_of(object_of(row.get("metadata"), f"{place}: field metadata"), id_field, place)
        if id_ in found:
            raise InputError(f"{place}: {id_field} {id_!r:.80} is answered twice; keep one answer")
        if topics is not None and id_ not in topics:
            raise InputError(
                f"{place}: {id_field} {id_!r:.80} is not in the gold; "
                "remove it or name its gold file"
            )
        place = f"{place} ({id_field} {id_:.80})"
        found[id_] = tuple(read(item, where) for where, item in items(row, list_field, place))
    return found


def _grounded(item: Row, where: str) -> Grounded:
    against = "contradicting_citations"
    given = "existing_supported_citations"
    return Grounded(
        text(item, "text", where),
        () if item.get(given) is None else _pmids(item, given, where),
        _pmids(item, "supported_citations", where),
        _pmids(item, against if against in item else "contradicted_citations", where),
    )


def _cited(item: Row, where: str) -> Cited:
    return Cited(text(item, "text", where), _pmids(item, "citations", where))


def _pmids(item: Row, field: str, where: str) -> tuple[int, ...]:
    value = item.get(field)
    if not isinstance(value, list | dict):
        raise InputError(f"{where}: field {field} must be a list of PMIDs, not {value!r:.40}")
    return tuple(pmid_of(pmid, f"{where}: field {field}") for pmid in value)


def records(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield (place, object) for each record of a JSON list, or each non-blank line."""
    whole = read_given(path)
    if whole.lstrip().startswith("["):
        for number, value in enumerate(parse_json(whole, str(path)), start=1):
            where = f"{path}: record {number}"
            yield where, object_of(value, where)
        return
    for number, line in enumerate(whole.split("\n"), start=1):
        if line.strip():
            where = f"{path}: line {number}"
            yield where, object_of(parse_json(line, where), where)


def object_of(value: Any, where: str) -> Row:
    """Return `value` if it is a JSON object; otherwise raise InputError, naming `where`."""
    if not isinstance(value, dict):
        raise InputError(f"{where}: must be an object, not {value!r:.40}")
    return value


def items(row: Row, field: str, place: str) -> Iterator[tuple[str, Row]]:
    """Yield (place, object) for each item of the list in `field`; places count from 1."""
    value = row.get(field)
    if not isinstance(value, list):
        raise InputError(f"{place}: field {field} must be a list, not {value!r:.40}")
    for number, item in enumerate(value, start=1):
        where = f"{place}, {field} {number}"
        yield where, object_of(item, where)


def id_of(row: Row, field: str, where: str) -> str:
    """Return an id as a string; the track uses both strings and numbers."""
    value = row.get(field)
    if type(value) is int or (isinstance(value, str) and value.strip()):
        return str(value).strip()
    raise InputError(f"{where}: field {field} must be a string or whole number, not {value!r:.40}")


def text(row: Row, field: str, where: str) -> str:
    """Return the non-blank string in `field`; otherwise raise InputError, naming `where`."""
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InputError(
            f"{where}: field {field} must be a string that is not empty, not {value!r:.40}"
        )
    return value


def pmid_of(value: Any, where: str) -> int:
    """Return a PMID from a whole number or a string of digits."""
    digits = value.strip() if isinstance(value, str) else value if type(value) is int else ""
    if not re.fullmatch(r"0*[1-9][0-9]{0,17}", str(digits)):
        raise InputError(f"{where}: a PMID is a whole number above 0, not {value!r:.40}")
    return int(digits)
