"""Read BioASQ's gold and run files for evaluation: the structure is validated strictly, and the
content is kept unchanged.

Synergy's files have the same structure. In its gold and feedback files a document may be an object
with `id` and `golden`, a snippet may have `golden` too, and a question whose `answerReady` is false
has no gold answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from cluster.answers import Verdict
from cluster.bioasq_file import read_rows
from cluster.errors import InputError

TYPES = ("yesno", "factoid", "list", "summary")
VERDICTS: tuple[str, ...] = get_args(Verdict)


@dataclass(frozen=True, slots=True)
class Snippet:
    """A span of a document. `end` is inclusive: the official program adds 1 to every length.

    `placed` is False if the file has `null` for an offset. The offset is then 0, which is the
    official program's value before it reads one.
    """

    document: str
    begin_section: str
    end_section: str
    begin: int
    end: int
    text: str = field(default="", compare=False)
    placed: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A question of a gold file, or a run's answer to it.

    `documents` are distinct and in order; `rejected` are the documents that experts judged not
    relevant. `exact` holds lower-cased synonyms, item by item; for yes/no one item, "yes", "no" or
    "none"; None means that there is no exact answer. CiteRay's runs have further fields: `verdict`
    and `confidence` (0 to 1), which are "" and None if absent, and `shown`, the texts of the
    passages from which the answer was written.
    """

    id: str
    type: str
    documents: tuple[str, ...]
    snippets: tuple[Snippet, ...]
    exact: tuple[tuple[str, ...], ...] | None
    ideal: tuple[str, ...]
    body: str = ""
    rejected: frozenset[str] = frozenset()
    verdict: str = ""
    confidence: float | None = None
    shown: tuple[str, ...] | None = None


def document_id(document: str) -> str:
    """Return the PMID, or the last part of any other address."""
    return document.rstrip("/").rpartition("/")[2]


def read_gold(path: Path) -> dict[str, Entry]:
    """Return the questions of a gold file by id, in file order; each needs a type.

    Raises InputError, naming the file, question and field, for content that is not in BioASQ's form
    and for duplicate ids.
    """
    return {id_: _only_gold(entry, path) for id_, entry in _read(path, {}).items()}


def _only_gold(entry: Entry, path: Path) -> Entry:
    """Remove an empty exact answer; the official program skips the question."""
    if entry.type == "yesno" and entry.exact == (("none",),):
        raise InputError(f"{path}: id {entry.id}: field exact_answer must be yes or no")
    return entry if entry.exact else replace(entry, exact=None)


def read_run(path: Path, gold: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return a run's answers by id. Types come from the gold file.

    Of the synonyms of an item, only the first is used. Raises InputError like `read_gold`, and for
    an id that is not in the gold file.
    """
    run = _read(path, {id_: entry.type for id_, entry in gold.items()})
    for number, id_ in enumerate(run):
        if id_ not in gold:
            raise InputError(
                f"{path}: question {number}: id {id_!r} is not in the gold file; remove it or name "
                "its gold file"
            )
    return {id_: _first_synonyms(entry) for id_, entry in run.items()}


def _first_synonyms(entry: Entry) -> Entry:
    if entry.exact is None or entry.type == "yesno":
        return entry
    return replace(entry, exact=tuple(item[:1] for item in entry.exact))


def _read(path: Path, types: Mapping[str, str]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for position, row in enumerate(read_rows(path)):
        entry = _entry(row, f"{path}: question {position}", types)
        if entry.id in found:
            raise InputError(f"{path}: question {position}: id {entry.id!r:.80} is answered twice")
        found[entry.id] = entry
    return found


def _entry(row: Any, where: str, types: Mapping[str, str]) -> Entry:
    if not isinstance(row, dict):
        raise InputError(f"{where}: must be an object, not {type(row).__name__}")
    id_ = read_text(row, "id", where)
    where = f"{where} (id {id_:.80})"
    kind = types.get(id_) or row.get("type") or ""
    if not types and kind not in TYPES:
        raise InputError(
            f"{where}: field type is {kind!r:.60}; it must be one of {', '.join(TYPES)}"
        )
    documents, rejected = read_documents(row, where)
    snippets, _ = read_snippets(row, where)
    exact, ideal = _exact(row.get("exact_answer"), kind, where), _ideal(row, where)
    if row.get("answerReady") is False:
        exact, ideal = None, ()
    body = row.get("body")
    text = body if isinstance(body, str) else ""
    verdict, confidence = _verdict(row, where)
    shown = _shown(row, where) if row.get("shown") is not None else None
    return Entry(
        id_, kind, documents, snippets, exact, ideal, text, rejected, verdict, confidence, shown
    )  # fmt: skip


def _shown(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    items = _items(row, "shown", where)
    if not all(isinstance(item, dict) for item in items):
        raise InputError(f"{where}: field shown must hold objects with a text")
    return tuple(read_text(item, "text", f"{where}, field shown") for item in items)


def _verdict(row: Mapping[str, Any], where: str) -> tuple[str, float | None]:
    verdict, confidence = row.get("verdict"), row.get("confidence")
    if verdict is not None and verdict not in VERDICTS:
        raise InputError(
            f"{where}: field verdict must be one of {', '.join(VERDICTS)}, not {verdict!r:.40}"
        )
    is_number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if confidence is not None and not (is_number and 0 <= confidence <= 1):
        raise InputError(
            f"{where}: field confidence must be a number from 0 to 1, not {confidence!r:.40}"
        )
    return verdict or "", None if confidence is None else float(confidence)


def read_documents(row: Mapping[str, Any], where: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the distinct documents in order, and those marked as not golden."""
    kept: list[str] = []
    rejected: list[str] = []
    for item in _items(row, "documents", where):
        judged = item if isinstance(item, dict) else {"id": item}
        name = judged.get("id")
        if not isinstance(name, str):
            raise InputError(f"{where}: field documents must hold strings, not {item!r:.40}")
        (kept if _is_golden(judged, where) else rejected).append(name)
    return tuple(dict.fromkeys(kept)), frozenset(rejected)


def read_snippets(
    row: Mapping[str, Any], where: str
) -> tuple[tuple[Snippet, ...], tuple[Snippet, ...]]:
    """Return the snippets in order, and those marked as not golden."""
    kept: list[Snippet] = []
    rejected: list[Snippet] = []
    for number, item in enumerate(_items(row, "snippets", where)):
        snippet = _snippet(item, f"{where}, snippet {number}")
        (kept if _is_golden(item, where) else rejected).append(snippet)
    return tuple(kept), tuple(rejected)


def _is_golden(item: Mapping[str, Any], where: str) -> bool:
    golden = item.get("golden", True)
    if not isinstance(golden, bool):
        raise InputError(f"{where}: field golden must be true or false, not {golden!r:.40}")
    return golden


def _ideal(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    ideal = row.get("ideal_answer") or []
    ideal = [ideal] if isinstance(ideal, str) else ideal
    if not isinstance(ideal, list) or not all(isinstance(text, str) for text in ideal):
        raise InputError(f"{where}: field ideal_answer must be a string or a list of strings")
    return tuple(ideal)


def read_text(row: Mapping[str, Any], field: str, where: str) -> str:
    """Return the non-empty string in `field`; raise InputError, naming `where`, otherwise."""
    value = row.get(field)
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}: field {field} must be a string that is not empty")
    return value


def _items(row: Mapping[str, Any], field: str, where: str) -> list[Any]:
    value = row.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{where}: field {field} must be a list, not {type(value).__name__}")
    return value


def _snippet(item: Any, where: str) -> Snippet:
    if not isinstance(item, dict):
        raise InputError(f"{where}: must be an object, not {type(item).__name__}")
    offsets = [_offset(item, f"offsetIn{edge}Section", where) for edge in ("Begin", "End")]
    # "sections.0" is compared as "0".
    sections = [
        read_text(item, f"{edge}Section", where).partition(".") for edge in ("begin", "end")
    ]
    names = [after if dot else before for before, dot, after in sections]
    text = item.get("text")
    return Snippet(
        read_text(item, "document", where),
        names[0],
        names[1],
        offsets[0] or 0,
        offsets[1] or 0,
        text if isinstance(text, str) else "",
        None not in offsets,
    )


def _offset(item: Mapping[str, Any], field: str, where: str) -> int | None:
    value = item.get(field)
    if value is None and field in item:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{where}: field {field} must be a whole number, not {value!r:.40}")
    return value


def _exact(value: Any, kind: str, where: str) -> tuple[tuple[str, ...], ...] | None:
    if value is None or kind == "summary":
        return None
    if kind == "yesno":
        if not isinstance(value, str):
            raise InputError(f"{where}: field exact_answer must be yes or no")
        lower = value.lower()
        return ((next((word for word in ("yes", "no") if word in lower), "none"),),)
    if isinstance(value, str):
        value = [value]
    items = (
        [[item] if isinstance(item, str) else item for item in value]
        if (isinstance(value, list))
        else None
    )
    if items is None or not all(
        isinstance(item, list) and all(isinstance(name, str) for name in item) for item in items
    ):
        raise InputError(f"{where}: field exact_answer must be a list of lists of strings")
    return tuple(tuple(name.lower() for name in item) for item in items if item)
