"""Read experts' judgements outside the gold file: Synergy's feedback or TREC qrels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from cluster.read_given import read_given
from evaluation.bioasq.read_bioasq import (
    Entry,
    Snippet,
    document_id,
    read_documents,
    read_snippets,
    read_text,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """Judged material of a question, relevant or not; `documents` are as in `document_id`."""

    documents: frozenset[str] = frozenset()
    snippets: frozenset[Snippet] = frozenset()


def read_feedback(paths: Iterable[Path]) -> dict[str, Judged]:
    """Return everything judged in Synergy's feedback files of earlier rounds, by question.

    Raises InputError, naming the file, the question and the field, for invalid content.
    """
    found: dict[str, Judged] = {}
    for path in paths:
        for number, row in enumerate(read_rows(path)):
            where = f"{path}: question {number}"
            if not isinstance(row, dict):
                raise InputError(f"{where}: must be an object, not {type(row).__name__}")
            id_ = read_text(row, "id", where)
            old = found.get(id_, Judged())
            documents = (d for group in read_documents(row, where) for d in group)
            snippets = (s for group in read_snippets(row, where) for s in group)
            found[id_] = Judged(
                old.documents.union(map(document_id, documents)), old.snippets.union(snippets)
            )
    return found


def remove_judged(entry: Entry, judged: Judged) -> Entry:
    """Return the entry without material judged before: BioASQ's residual collection evaluation.

    Synergy's organisers remove material of earlier feedback from the gold and from the systems'
    answers, so that no document counts twice. A snippet counts as judged only if exactly the same
    span was judged; a judgement of its document is not sufficient.
    """
    return replace(
        entry,
        documents=tuple(d for d in entry.documents if document_id(d) not in judged.documents),
        snippets=tuple(s for s in entry.snippets if s not in judged.snippets),
    )


def read_qrels(path: Path) -> dict[str, frozenset[str]]:
    """Return the judged documents of a TREC qrels file by question.

    Each line is `QUESTION 0 DOCUMENT GRADE`. Raises InputError, naming the line, for any other
    form.
    """
    lines = read_given(path).splitlines()
    found: dict[str, set[str]] = {}
    for number, line in enumerate(lines, start=1):
        parts = line.split()
        if not parts:
            continue
        if len(parts) != 4 or not parts[3].lstrip("-").isdigit():
            raise InputError(
                f"{path}: line {number}: must be QUESTION 0 DOCUMENT GRADE, not {line!r:.60}"
            )
        found.setdefault(parts[0], set()).add(document_id(parts[2]))
    return {id_: frozenset(documents) for id_, documents in found.items()}


def judged_documents(
    gold: Mapping[str, Entry], qrels: Mapping[str, frozenset[str]] | None = None
) -> dict[str, frozenset[str]]:
    """Return all judged documents of a question: gold, rejected, or in the qrels."""
    return {
        id_: frozenset(map(document_id, _named(entry))) | (qrels or {}).get(id_, frozenset())
        for id_, entry in gold.items()
    }


def _named(entry: Entry) -> Sequence[str]:
    return (*entry.documents, *entry.rejected, *(s.document for s in entry.snippets))
