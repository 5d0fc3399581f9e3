"""Read questions and write runs in BioASQ's JSON format (bioasq.org, Task b guidelines).

For each question a run contains at most ten documents, ten snippets, the exact answer in the form
of the question's type, and an ideal answer of at most 200 words without citations.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self, TextIO, cast

from cluster.answers import (
    NOT_ENOUGH,
    QUESTION_TYPES,
    Answer,
    ExactAnswer,
    Question,
    QuestionType,
    SearchResult,
    Sentence,
)
from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from cluster.records import Passage
from cluster.storage.whole_files import write_atomically

MAX_BODY_CHARS = 2000
MAX_ID_CHARS = 200
MAX_DOCUMENTS = 10
MAX_SNIPPETS = 10
MAX_FACTOIDS = 5
MAX_LIST = 100
MAX_ENTITY_CHARS = 100
MAX_IDEAL_WORDS = 200
PARTIAL = ".partial"

Entry = dict[str, Any]


def document_url(pmid: int) -> str:
    """Return the URL of a PubMed article as in BioASQ's gold files."""
    return f"http://www.ncbi.nlm.nih.gov/pubmed/{pmid}"


def read_questions(path: Path) -> list[Question]:
    """Return the questions of a BioASQ file in order; only id, type and body are read.

    Raise InputError with the file, question and field for a file that cannot be read or is not
    BioASQ's JSON, a missing field, a wrong type, an empty or too long body, and a duplicate id.
    """
    return as_questions(read_rows(path), str(path))


def as_questions(entries: Sequence[Any], where: str) -> list[Question]:
    """Return the questions as `read_questions` does; error messages begin with `where`."""
    questions: list[Question] = []
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        question = _read_question(entry, f"{where}: question {index}")
        if question.id in seen:
            raise InputError(
                f"{where}: question {index}: id {question.id!r} is also that of question"
                f" {seen[question.id]}; give each question its own id"
            )
        seen[question.id] = index
        questions.append(question)
    return questions


def _read_question(entry: Any, where: str) -> Question:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: must be an object, not {type(entry).__name__}")
    name = _read_field(entry, "id", where)
    if len(name) > MAX_ID_CHARS:
        raise InputError(f"{where}: id has {len(name)} characters, at most {MAX_ID_CHARS}")
    where = f"{where} (id {name if name.isprintable() else repr(name)})"
    kind = _read_field(entry, "type", where)
    if kind not in QUESTION_TYPES:
        raise InputError(f"{where}: type {kind!r:.60} is not one of {', '.join(QUESTION_TYPES)}")
    body = _read_field(entry, "body", where).strip()
    if len(body) > MAX_BODY_CHARS:
        raise InputError(f"{where}: body has {len(body)} characters, at most {MAX_BODY_CHARS}")
    return Question(name, body, cast(QuestionType, kind))


def _read_field(entry: Mapping[str, Any], field: str, where: str) -> str:
    if field not in entry:
        raise InputError(f"{where}: field {field} is missing")
    value = entry[field]
    if not isinstance(value, str):
        raise InputError(f"{where}: {field} must be a string, not {value!r:.60}")
    if not value.strip():
        raise InputError(f"{where}: {field} is empty")
    return whole_text(value, field, where)


def whole_text(text: str, field: str, where: str) -> str:
    """Return `text`; raise InputError if it cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: {field} has a lone surrogate at {error.start}, which is half of a character;"
            " write the whole character or leave it out"
        ) from None
    return text


def to_entry(
    result: SearchResult,
    snippets: Sequence[Passage] | None = None,
    documents: int = MAX_DOCUMENTS,
) -> Entry:
    """Return the entry of one question in a run. `snippets` default to the result's own.

    BioASQ accepts at most MAX_DOCUMENTS `documents`. The entry of a SearchResult has no answer.
    BioASQ forces a choice, so without enough evidence the entry has the best guess. The
    additional fields `verdict` and `confidence`, which are not BioASQ's, mark such answers. The
    additional field `shown` lists the passages that a language model was given, in order.
    """
    question = result.question
    passages = result.snippets if snippets is None else snippets
    entry: Entry = {
        "id": question.id,
        "type": question.type,
        "body": question.body,
        "documents": [document_url(c.pmid) for c in result.citations[:documents]],
        "snippets": [as_snippet(passage) for passage in passages[:MAX_SNIPPETS]],
    }
    if isinstance(result, Answer):
        entry["ideal_answer"] = _ideal(result.choice.ideal)
        if question.type != "summary":
            entry["exact_answer"] = _exact(question.type, result.choice.exact)
        entry |= {"verdict": result.verdict, "confidence": result.confidence}
        if result.shown is not None:
            entry["shown"] = [
                as_snippet(result.evidence[position].passage) for position in result.shown
            ]
    return entry


def as_snippet(passage: Passage) -> Entry:
    """Return a passage in the form of a BioASQ snippet."""
    return {
        "document": document_url(passage.pmid),
        "beginSection": passage.section,
        "endSection": passage.section,
        "offsetInBeginSection": passage.begin,
        "offsetInEndSection": passage.end,
        "text": passage.text,
    }


def _ideal(sentences: Iterable[Sentence]) -> str:
    """Join whole sentences up to the word limit; only the first may be cut to fit."""
    words: list[str] = []
    for sentence in sentences:
        more = sentence.text.split()
        if words and len(words) + len(more) > MAX_IDEAL_WORDS:
            break
        words += more
    return " ".join(words[:MAX_IDEAL_WORDS])


def _exact(kind: str, exact: ExactAnswer) -> ExactAnswer:
    if kind == "yesno":
        return exact if exact in ("yes", "no") else "no"
    names = exact if isinstance(exact, list) else []
    limit = MAX_FACTOIDS if kind == "factoid" else MAX_LIST
    # Since its fifth year BioASQ accepts no synonyms: keep the first name of each item.
    fitting = [[name for name in group if len(name) <= MAX_ENTITY_CHARS][:1] for group in names]
    return [group for group in fitting if group][:limit]


def write_run(path: Path, entries: Iterable[Entry]) -> None:
    """Write the run atomically."""
    text = json.dumps({"questions": list(entries)}, ensure_ascii=False, indent=1)
    write_atomically(path, f"{text}\n".encode())


def read_so_far(path: Path, after: int, count: int) -> list[Entry]:
    """Return up to `count` entries of a run, finished or not, skipping the first `after`.

    They are in the order of the questions in a finished run, and of completion in an unfinished
    one.
    """
    if path.is_file():
        entries: list[Entry] = json.loads(path.read_bytes())["questions"]
        return entries[after : after + count]
    partial = path.with_name(path.name + PARTIAL)
    if not partial.is_file():
        return []
    with partial.open(encoding="utf-8") as lines:
        # The last line may be incomplete.
        whole = (line for line in lines if line.endswith("\n"))
        return [json.loads(line)["entry"] for line in islice(whole, after, after + count)]


def count_guesses(path: Path) -> int:
    """Return how many answers of a finished run are guesses without enough evidence."""
    entries = json.loads(path.read_bytes())["questions"]
    return sum(entry.get("verdict") == NOT_ENOUGH for entry in entries)


class RunWriter:
    """Resumable writer of a run: each entry is appended to `PATH.partial` as it arrives.

    Entries of an interrupted run are kept, and listed in `done`, if it had the same system, index
    version, `answers` and `inputs` (a digest, or ""); others are dropped. `finish` writes the run
    and removes the partial file; after an exception the partial file remains for the next run.
    """

    def __init__(
        self,
        path: Path,
        system: str,
        index_version: str,
        *,
        answers: bool = True,
        inputs: str = "",
    ) -> None:
        self._path = path
        self._partial = path.with_name(path.name + PARTIAL)
        self._key: dict[str, Any] = {
            "system": system,
            "index_version": index_version,
            "answers": answers,
            "inputs": inputs,
        }
        self._kept = self._read_partial()
        try:
            self._file = self._rewrite_partial()
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None

    @property
    def done(self) -> KeysView[str]:
        """Return a live view of the ids of the questions that have an entry."""
        return self._kept.keys()

    @property
    def notes(self) -> list[Any]:
        """Return the note of each entry in `done`, in the order of completion."""
        return [note for _, note in self._kept.values()]

    def add(self, entry: Entry, note: Any = None) -> None:
        """Write the entry to the partial file; it replaces an earlier entry with the same id.

        `note` is JSON stored with the entry in the partial file, but not in the run.
        """
        self._kept[entry["id"]] = entry, note
        self._file.write(self._line(entry, note))
        self._file.flush()

    def _line(self, entry: Entry, note: Any) -> str:
        record = {**self._key, "entry": entry, "note": note}
        return json.dumps(record, ensure_ascii=False) + "\n"

    def finish(
        self,
        questions: Sequence[Question],
        write: Callable[[Path, Iterable[Entry]], None] = write_run,
    ) -> None:
        """Write the run with the entries of `questions`, in order, and delete the partial file.

        Raise InputError if a question has no entry.
        """
        missing = [q.id for q in questions if q.id not in self._kept]
        if missing:
            raise InputError(f"{self._path}: {len(missing)} questions unanswered: {missing[:5]}")
        write(self._path, [self._kept[q.id][0] for q in questions])
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read_partial(self) -> dict[str, tuple[Entry, Any]]:
        found: dict[str, tuple[Entry, Any]] = {}
        if not self._partial.is_file():
            return found
        for line in self._partial.read_bytes().splitlines():
            try:
                record = json.loads(line)
                entry, key = record["entry"], {k: record.get(k, "") for k in self._key}
                if key == self._key and isinstance(entry["id"], str):
                    found[entry["id"]] = entry, record.get("note")
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue  # The line was incomplete when the run was interrupted.
        return found

    def _rewrite_partial(self) -> TextIO:
        """Rewrite the partial file with only the valid lines, and return it open for appending."""
        aside = self._partial.with_name(self._partial.name + ".tmp")
        file = aside.open("w", encoding="utf-8")
        file.writelines(self._line(*kept) for kept in self._kept.values())
        file.flush()
        os.replace(aside, self._partial)
        return file
