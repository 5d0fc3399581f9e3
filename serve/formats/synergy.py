"""Read Synergy files: the questions of a round, and the experts' feedback on earlier rounds.

Experts mark documents and snippets as golden (relevant) or not. Questions with `answerReady` need
answers, the others only new documents (participants-area.bioasq.org, Task Synergy).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.answers import Question
from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from serve.formats.bioasq import read_questions

_PMID = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class RoundQuestion:
    """Question of a round. It needs an answer if `ready` is True."""

    question: Question
    ready: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """PMIDs that experts have judged for one question as relevant or not."""

    golden: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        """Return all judged PMIDs."""
        return self.golden | self.rejected


def read_round_questions(path: Path) -> list[RoundQuestion]:
    """Return the questions of a round's test set in their order.

    A question without `answerReady` is not ready, as in the first round. Raises InputError if the
    flag is neither true nor false, and the errors of `read_questions`.
    """
    found = []
    for question, row in zip(read_questions(path), read_rows(path), strict=True):
        ready = row.get("answerReady", row.get("answer_ready", False))
        if not isinstance(ready, bool):
            raise InputError(
                f"{path}: id {question.id}: answerReady must be true or false, not {ready!r:.40}"
            )
        found.append(RoundQuestion(question, ready))
    return found


def read_judged(paths: Iterable[Path]) -> dict[str, Judged]:
    """Return the judgements of feedback files by question id; a document's last mark counts.

    Raises InputError naming the file, the question and the field if the format is invalid.
    """
    judgements: dict[str, dict[int, bool]] = {}
    for path in paths:
        for number, row in enumerate(read_rows(path)):
            where = f"{path}: question {number}"
            if not isinstance(row, dict) or not isinstance(row.get("id"), str):
                raise InputError(f"{where}: must be an object with an id, not {row!r:.60}")
            where = f"{where} (id {row['id']:.80})"
            known = judgements.setdefault(row["id"], {})
            for document in _items(row, "documents", where):
                known.update([_judgement(document, "id", f"{where}: documents")])
            for snippet in _items(row, "snippets", where):
                pmid, golden = _judgement(snippet, "document", f"{where}: snippets")
                known.setdefault(pmid, golden)
    return {
        id_: Judged(
            frozenset(pmid for pmid, golden in known.items() if golden),
            frozenset(pmid for pmid, golden in known.items() if not golden),
        )
        for id_, known in judgements.items()
    }


def _items(row: Mapping[str, Any], field: str, where: str) -> list[Any]:
    value = row.get(field)
    if value is not None and not isinstance(value, list):
        raise InputError(f"{where}: field {field} must be a list, not {value!r:.40}")
    return value or []


def _judgement(item: Any, field: str, where: str) -> tuple[int, bool]:
    """Return (PMID, whether it is golden); a plain URL, without a mark, is golden."""
    judged = item if isinstance(item, dict) else {field: item}
    name, golden = judged.get(field), judged.get("golden", True)
    last = name.rstrip("/").rpartition("/")[2] if isinstance(name, str) else ""
    if not _PMID.fullmatch(last):
        raise InputError(f"{where}: {field} must end in a PMID, not {name!r:.60}")
    if not isinstance(golden, bool):
        raise InputError(f"{where}: golden must be true or false, not {golden!r:.40}")
    return int(last), golden
