"""BioASQ's own JSON: questions in, a run out (bioasq.org, Task b guidelines).

A run holds, for each question, at most ten documents, ten snippets, the exact answer in
the form of its type, and an ideal answer of at most 200 words without citations.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, KeysView, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self, TextIO, cast

from cluster.answers import (
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
    """The address of a PubMed article as BioASQ's gold files write it."""
    return f"http://www.ncbi.nlm.nih.gov/pubmed/{pmid}"


def read_questions(path: Path) -> list[Question]:
    """The questions of a BioASQ file, in its order; fields beside id, type and body are ignored.

    Raises InputError naming the file, the question and the field for: a file that cannot
    be read or is not BioASQ's JSON, a missing field, a wrong type, an empty or too long
    body, and an id that came before.
    """
    return as_questions(read_rows(path), str(path))


def as_questions(entries: Sequence[Any], place: str) -> list[Question]:
    """See `read_questions`; `place` is where the entries stand."""
    questions: list[Question] = []
    seen: dict[str, int] = {}
    for index, entry in enumerate(entries):
        question = _read_question(entry, f"{place}: question {index}")
        if question.id in seen:
            raise InputError(
                f"{place}: question {index}: id {question.id!r} is also that of question"
                f" {seen[question.id]}; give each its own"
            )
        seen[question.id] = index
        questions.append(question)
    return questions


def _read_question(entry: Any, place: str) -> Question:
    if not isinstance(entry, dict):
        raise InputError(f"{place}: must be an object, not {type(entry).__name__}")
    name = _read_field(entry, "id", place)
    if len(name) > MAX_ID_CHARS:
        raise InputError(f"{place}: id has {len(name)} characters, at most {MAX_ID_CHARS}")
    place = f"{place} (id {name if name.isprintable() else repr(name)})"
    kind = _read_field(entry, "type", place)
    if kind not in QUESTION_TYPES:
        raise InputError(f"{place}: type {kind!r:.60} is none of {', '.join(QUESTION_TYPES)}")
    body = _read_field(entry, "body", place).strip()
    if len(body) > MAX_BODY_CHARS:
        raise InputError(f"{place}: body has {len(body)} characters, at most {MAX_BODY_CHARS}")
    return Question(name, body, cast(QuestionType, kind))


def _read_field(entry: Mapping[str, Any], field: str, place: str) -> str:
    if field not in entry:
        raise InputError(f"{place}: field {field} is missing")
    value = entry[field]
    if not isinstance(value, str):
        raise InputError(f"{place}: {field} must be a string, not {value!r:.60}")
    if not value.strip():
        raise InputError(f"{place}: {field} is empty")
    return whole_text(value, field, place)


def whole_text(text: str, field: str, place: str) -> str:
    """`text` itself, which can be written as UTF-8, or an InputError."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{place}: {field} holds half a character at {error.start} (a lone surrogate);"
            " write it whole, or leave it out"
        ) from None
    return text


def to_entry(
    result: SearchResult,
    snippets: Sequence[Passage] | None = None,
    documents: int = MAX_DOCUMENTS,
) -> Entry:
    """One question of a run. `snippets` are by default the result's own.

    BioASQ takes no more `documents` than by default. A SearchResult gives no answers. BioASQ
    forces a choice: the best guess stands where the evidence is not enough, as the fields
    `verdict` and `confidence` tell, which are not BioASQ's. Nor is `shown`: the passages that the
    language model was shown, in its order, where one was asked.
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
            entry["shown"] = [as_snippet(result.evidence[place].passage) for place in result.shown]
    return entry


def as_snippet(passage: Passage) -> Entry:
    """A passage in the form of BioASQ's snippets."""
    return {
        "document": document_url(passage.pmid),
        "beginSection": passage.section,
        "endSection": passage.section,
        "offsetInBeginSection": passage.begin,
        "offsetInEndSection": passage.end,
        "text": passage.text,
    }


def _ideal(sentences: Iterable[Sentence]) -> str:
    """Whole sentences up to the word limit; the first alone may be cut to fit."""
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
    # BioASQ takes no synonyms since its fifth year: only the first name of an item counts.
    fitting = [[name for name in group if len(name) <= MAX_ENTITY_CHARS][:1] for group in names]
    return [group for group in fitting if group][:limit]


def write_run(path: Path, entries: Iterable[Entry]) -> None:
    """Writes the run whole or not at all."""
    text = json.dumps({"questions": list(entries)}, ensure_ascii=False, indent=1)
    write_atomically(path, f"{text}\n".encode())


def read_so_far(path: Path, after: int, count: int) -> list[Entry]:
    """Up to `count` entries of a run behind the first `after`, finished or still being written.

    A finished run has them in the order of its questions, one at work in that of its answers.
    """
    if path.is_file():
        entries: list[Entry] = json.loads(path.read_bytes())["questions"]
        return entries[after : after + count]
    partial = path.with_name(path.name + PARTIAL)
    if not partial.is_file():
        return []
    with partial.open(encoding="utf-8") as lines:
        # The last line may be half written.
        whole = (line for line in lines if line.endswith("\n"))
        return [json.loads(line)["entry"] for line in islice(whole, after, after + count)]


class RunWriter:
    """A run that survives interruption: each entry is kept in `PATH.partial` as it comes.

    Entries of an earlier, interrupted run by the same system over the same index version,
    with `answers` or without as now and from the same `inputs` (a digest, or ""), are in
    `done` and need no second answer; others are dropped. `finish` writes the run and removes
    the partial file, leaving an exception keeps it for the next time.
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
        self._entries = {entry["id"]: entry for entry in self._read_partial()}
        try:
            self._file = self._rewrite_partial()
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None

    @property
    def done(self) -> KeysView[str]:
        """The ids of the questions that have an entry, also of later ones."""
        return self._entries.keys()

    def add(self, entry: Entry) -> None:
        """Keeps the entry of `to_entry` on disk before it returns; a later one of an id wins."""
        self._entries[entry["id"]] = entry
        self._file.write(json.dumps({**self._key, "entry": entry}, ensure_ascii=False) + "\n")
        self._file.flush()

    def finish(
        self,
        questions: Sequence[Question],
        write: Callable[[Path, Iterable[Entry]], None] = write_run,
    ) -> None:
        """Writes the run with the entries of `questions`, in their order, and cleans up.

        Raises InputError when one of them has no entry yet.
        """
        missing = [q.id for q in questions if q.id not in self._entries]
        if missing:
            raise InputError(f"{self._path}: {len(missing)} questions unanswered: {missing[:5]}")
        write(self._path, [self._entries[q.id] for q in questions])
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read_partial(self) -> list[Entry]:
        if not self._partial.is_file():
            return []
        entries: list[Entry] = []
        for line in self._partial.read_bytes().splitlines():
            try:
                record = json.loads(line)
                entry, key = record["entry"], {k: record.get(k, "") for k in self._key}
                if key == self._key and isinstance(entry["id"], str):
                    entries.append(entry)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue  # the line that was being written when the run was interrupted
        return entries

    def _rewrite_partial(self) -> TextIO:
        """The partial file with only the lines still valid, open at its end."""
        aside = self._partial.with_name(self._partial.name + ".tmp")
        file = aside.open("w", encoding="utf-8")
        for entry in self._entries.values():
            file.write(json.dumps({**self._key, "entry": entry}, ensure_ascii=False) + "\n")
        file.flush()
        os.replace(aside, self._partial)
        return file
