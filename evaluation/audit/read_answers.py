"""Read the citations and quotations of stored answers in every format.

Replies of /v1/answer and BioGen runs (tasks A and B) are JSON lines, parsed one at a time; other
files are read as by `citeray lint`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from cluster.errors import InputError
from cluster.read_given import read_given
from cluster.records import Passage, SectionName
from evaluation.biogen.read_biogen import items, object_of
from evaluation.lint.check_biogen import CONTRADICTED, GIVEN, OTHER_NAME, SUPPORTED
from evaluation.lint.check_material import SECTIONS
from evaluation.lint.lint_run import read_run_file
from evaluation.lint.note_problems import read_pmid

Row = Mapping[str, Any]
IDS = ("id", "qa_id", "topic_id")


@dataclass
class StoredAnswer:
    """The citations of a stored answer. `version` is its index version, or "" if unknown.

    `cited` maps each PMID to the parts of the answer that cite it; `quoted` holds quotations with
    their stored offsets; `described` holds stored titles and years; `retracted` holds the PMIDs
    that the answer marks as retracted, and `exposed` those that it marks as exposed to retractions;
    `verdict` is "" if the file has none.
    """

    id: str
    place: str
    version: str = ""
    verdict: str = ""
    cited: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    quoted: list[Passage] = field(default_factory=list)
    described: dict[int, Row] = field(default_factory=dict)
    retracted: set[int] = field(default_factory=set)
    exposed: set[int] = field(default_factory=set)

    def cite(self, value: Any, by: str) -> int:
        """Record that `by` cites `value`, and return its PMID."""
        pmid = read_pmid(value)
        if pmid is None:
            raise InputError(f"{self.place}, {by}: {value!r:.80} is not a PMID; correct the file")
        if by not in self.cited[pmid]:
            self.cited[pmid].append(by)
        return pmid

    def quote(self, pmid: int, section: Any, begin: Any, end: Any, text: Any) -> None:
        """Record a quotation if it can be compared with the index."""
        name = SECTIONS.get(section) if isinstance(section, str) else None
        if name and type(begin) is int and type(end) is int and isinstance(text, str) and text:
            self.quoted.append(Passage(pmid, cast(SectionName, name), begin, end, text))


def read_answers(path: Path) -> Iterator[StoredAnswer]:
    """Yield the answers of `path` in order; there is at least one.

    Raises InputError, naming the file, the line or record and the field, if the file cannot be
    read, has an unknown form, or cites something that is not a PMID.
    """
    empty = True
    for where, row, read in _rows(path):
        answer = StoredAnswer(_id(row) or where.rpartition(": ")[2], where, verdict=_verdict(row))
        read(answer, row)
        empty = False
        yield answer
    if empty:
        raise InputError(f"{path}: contains no answer")


def _rows(path: Path) -> Iterator[tuple[str, Row, Callable[[StoredAnswer, Row], None]]]:
    streamed = False
    for number, line in enumerate(read_given(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        row = _object(line)
        read = next((read for name, read in LINES.items() if name in row), None)
        if read is not None:
            streamed = True
            yield where, row, read
        elif streamed:
            raise InputError(f"{where}: no answer as a JSON object with {' or '.join(LINES)}")
        else:
            break
    if not streamed:
        run = read_run_file(path)
        for number, value in enumerate(run.rows, 1):
            where = f"{path}: record {number}"
            yield where, object_of(value, where), RUNS[run.format]


def _object(line: str) -> Row:
    """Return the JSON object of a line, or {} if it is not a complete one."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _id(row: Row) -> str:
    """Return a question's id from any of the formats, or "" if there is none."""
    for source in (row.get("question"), row.get("metadata"), row):
        if isinstance(source, dict):
            found = (source.get(name) for name in IDS)
            if first := next((str(v) for v in found if v or type(v) is int), ""):
                return first
    return ""


def _verdict(row: Row) -> str:
    """Return the verdict from any of the formats; answers of earlier versions have none."""
    metadata = row.get("metadata")
    for source in (row, metadata if isinstance(metadata, dict) else {}):
        if isinstance(verdict := source.get("verdict"), str):
            return verdict
    return ""


def _read_reply(answer: StoredAnswer, row: Row) -> None:
    """Read a reply of /v1/answer. If it has no sentences, its evidence counts as cited."""
    answer.version = str(row.get("index_version") or "")
    for number, (place, sentence) in enumerate(items(row, "ideal", answer.place), 1):
        for pmid in _list(sentence, "pmids", place):
            answer.cite(pmid, f"sentence {number}")
    for number, (place, evidence) in enumerate(_optional(row, "evidence", answer.place), 1):
        passage = object_of(evidence.get("passage"), f"{place}: field passage")
        if not row["ideal"]:
            answer.cite(passage.get("pmid"), f"evidence {number}")
        _read_passage(answer, passage)
        _describe(answer, passage.get("pmid"), evidence)
    for _, snippet in _optional(row, "snippets", answer.place):
        _read_passage(answer, snippet)
    exposure = row.get("exposure")
    for _, source in _optional(exposure if exposure else {}, "exposed", answer.place):
        answer.exposed.add(source.get("pmid") or 0)
    for _, citation in _optional(row, "citations", answer.place):
        _describe(answer, citation.get("pmid"), citation)


def _read_passage(answer: StoredAnswer, passage: Row) -> None:
    pmid = read_pmid(passage.get("pmid"))
    if pmid is not None:
        edges = passage.get("begin"), passage.get("end")
        answer.quote(pmid, passage.get("section"), *edges, passage.get("text"))


def _describe(answer: StoredAnswer, value: Any, row: Row) -> None:
    pmid = read_pmid(value)
    if pmid is None:
        return
    stored = {name: row[name] for name in ("title", "year") if row.get(name)}
    answer.described[pmid] = {**answer.described.get(pmid, {}), **stored}
    if row.get("retracted") is True:
        answer.retracted.add(pmid)


def _read_bioasq(answer: StoredAnswer, row: Row) -> None:
    """Read the documents and snippets of a question in a BioASQ or Synergy run."""
    for number, document in enumerate(_list(row, "documents", answer.place), 1):
        answer.cite(document, f"document {number}")
    for number, (_, snippet) in enumerate(_optional(row, "snippets", answer.place), 1):
        pmid = answer.cite(snippet.get("document"), f"snippet {number}")
        begin, end = (snippet.get(f"offsetIn{edge}Section") for edge in ("Begin", "End"))
        if snippet.get("beginSection") == snippet.get("endSection"):
            answer.quote(pmid, snippet.get("beginSection"), begin, end, snippet.get("text"))


def _read_biogen_a(answer: StoredAnswer, row: Row) -> None:
    """Read task A: the citations given with a sentence, and those that the run adds."""
    for number, (place, sentence) in enumerate(items(row, "answer", answer.place), 1):
        for name in (GIVEN, SUPPORTED, CONTRADICTED, OTHER_NAME):
            for pmid in _list(sentence, name, place):
                answer.cite(pmid, f"sentence {number}")


def _read_biogen_b(answer: StoredAnswer, row: Row) -> None:
    """Read task B: the run's own sentences."""
    for number, (place, sentence) in enumerate(items(row, "responses", answer.place), 1):
        for pmid in _list(sentence, "citations", place):
            answer.cite(pmid, f"sentence {number}")


def _list(row: Row, name: str, where: str) -> list[Any]:
    """Return the list in a field; [] if absent, and the keys of an object (some BioGen runs)."""
    value = row.get(name)
    if value is None:
        return []
    if not isinstance(value, list | dict):
        raise InputError(f"{where}: field {name} must be a list, not {value!r:.40}")
    return list(value)


def _optional(row: Row, name: str, where: str) -> Iterator[tuple[str, Row]]:
    return iter(()) if row.get(name) is None else items(row, name, where)


LINES = {"ideal": _read_reply, "responses": _read_biogen_b, "answer": _read_biogen_a}
RUNS = {
    "bioasq": _read_bioasq,
    "synergy": _read_bioasq,
    "biogen-a": _read_biogen_a,
    "biogen-b": _read_biogen_b,
}
