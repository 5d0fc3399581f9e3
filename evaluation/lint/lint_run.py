"""Read a run file of any format, check it by its format's rules, and write it repaired."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cluster.errors import InputError
from cluster.parse_json import parse_json
from cluster.read_given import read_given
from cluster.storage.whole_files import write_atomically
from evaluation.biogen.read_biogen import records
from evaluation.lint.check_bioasq import answer_ready, check_bioasq
from evaluation.lint.check_biogen import check_biogen
from evaluation.lint.note_problems import Asked, Checked

if TYPE_CHECKING:
    from evaluation.find_citations import CitationLookup


Form = Literal["object", "list", "lines"]
CHECKS: Mapping[str, Callable[..., Checked]] = {
    "bioasq": check_bioasq,
    "synergy": partial(check_bioasq, synergy=True),
    "biogen-a": partial(check_biogen, task="A"),
    "biogen-b": partial(check_biogen, task="B"),
}


BIOASQ_FIELDS = ("documents", "snippets", "exact_answer", "ideal_answer")
# Fields that hold the content of a row, by format.
SAYS = {
    "bioasq": BIOASQ_FIELDS,
    "synergy": BIOASQ_FIELDS,
    "biogen-a": ("answer",),
    "biogen-b": ("responses",),
}


@dataclass(frozen=True, slots=True)
class Run:
    """A run file. `frame` holds the top-level fields other than `questions` in BioASQ's form."""

    format: str
    rows: list[Any]
    form: Form
    frame: Mapping[str, Any]

    @property
    def is_empty(self) -> bool:
        """Whether no row has any content: no document, no snippet, no answer."""
        fields = SAYS[self.format]
        objects = (row for row in self.rows if isinstance(row, dict))
        return not any(_has_content(row.get(field)) for row in objects for field in fields)


def _has_content(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_content, value))
    return bool(value.strip()) if isinstance(value, str) else value is not None


def read_run_file(path: Path, run_format: str | None = None) -> Run:
    """Read a run in `run_format`; by default the format is detected.

    Only the outer structure is checked here; the linter reports problems inside. Raises InputError,
    naming the file, if it cannot be read, is not JSON, or has another form.
    """
    if run_format is not None and run_format not in CHECKS:
        raise InputError(f"--format {run_format}: unknown; there are: {', '.join(CHECKS)}")
    rows, form, frame = _read_rows(path)
    found = run_format or _guess(rows, form)
    if found is None or (form == "object") != (found in ("bioasq", "synergy")):
        raise InputError(
            f"{path}: not in the format of {found or 'a known run format'}; BioASQ and Synergy "
            'have {"questions": [...]}, BioGen one object a line, or a list of them, with metadata '
            "and answer (task A) or responses (task B)"
        )
    return Run(found, rows, form, frame)


def read_asked(path: Path) -> dict[str, Asked]:
    """Return the questions of a gold, question or topic file by id.

    Raises InputError, naming the file and the record, for a record without an id.
    """
    rows, _, _ = _read_rows(path)
    asked: dict[str, Asked] = {}
    for number, row in enumerate(rows):
        id_ = _id(row) if isinstance(row, dict) else None
        if id_ is None:
            raise InputError(f"{path}: record {number}: no id, qa_id or topic_id; give it one")
        kind = row.get("type")
        known = kind if isinstance(kind, str) and kind != "unknown" else None
        asked[id_] = Asked(known, answer_ready(row))
    return asked


def check_run(
    run: Run,
    questions: Mapping[str, Asked] | None = None,
    lookup: CitationLookup | None = None,
    *,
    drop_unknown: bool = False,
) -> Checked:
    """Return the problems of a run, and its rows as `--fix` would write them."""
    return CHECKS[run.format](run.rows, questions, lookup, drop_unknown=drop_unknown)


def write_run_file(path: Path, run: Run) -> None:
    """Write a run atomically in its own form.

    Raises InputError if `path` cannot be written.
    """
    if run.form == "lines":
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in run.rows)
    else:
        value = {**run.frame, "questions": run.rows} if run.form == "object" else run.rows
        text = json.dumps(value, ensure_ascii=False, indent=1)
    try:
        # An unpaired surrogate is not valid UTF-8; the backslash escape is valid JSON.
        write_atomically(path, f"{text}\n".encode(errors="backslashreplace"))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _read_rows(path: Path) -> tuple[list[Any], Form, dict[str, Any]]:
    text = read_given(path)
    try:
        value = parse_json(text, str(path))
    except InputError:
        # The file may be JSON lines. If these are invalid, too, `records` names the line.
        return [row for _, row in records(path)], "lines", {}
    if isinstance(value, list):
        return value, "list", {}
    if isinstance(value, dict) and isinstance(value.get("questions"), list):
        frame = {field: other for field, other in value.items() if field != "questions"}
        return value["questions"], "object", frame
    return [value], "lines", {}


def _guess(rows: Sequence[Any], form: Form) -> str | None:
    objects = [row for row in rows if isinstance(row, dict)]
    if form == "object":
        marked = any(answer_ready(row) is not None for row in objects)
        return "synergy" if marked else "bioasq"
    if any("answer" in row for row in objects):
        return "biogen-a"
    return "biogen-b" if any("responses" in row for row in objects) else None


def _id(row: Mapping[str, Any]) -> str | None:
    """Return the id of a question, or of a BioGen topic under any of its names."""
    metadata = row.get("metadata", row.get("meta_data"))
    for source in (metadata if isinstance(metadata, dict) else {}, row):
        for field in ("qa_id", "topic_id", "id"):
            value = source.get(field)
            if type(value) is int or (isinstance(value, str) and value.strip()):
                return str(value).strip()
    return None


MAX_BYTES = 4096


def note_questions(run: Path, questions: Path) -> None:
    """Write the path of the questions file into a hidden file beside the run."""
    write_atomically(_note_of(run), bytes(questions.absolute()))


def noted_questions(run: Path) -> Path | None:
    """Return the questions file of a run; None if it is not known, or no longer there."""
    note = _note_of(run)
    if not note.is_file() or note.stat().st_size > MAX_BYTES:
        return None
    questions = Path(note.read_text(encoding="utf-8", errors="surrogateescape"))
    return questions if questions.is_file() else None


def _note_of(run: Path) -> Path:
    return run.with_name(f".{run.name}.questions")
