"""Read topics and write runs of TREC BioGen (2025), with one JSON object per line in a run.

The fields are those of the track's description and starter kit. Task A asks for PMIDs for and
against the given sentences of an answer, task B for an answer of at most 250 words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.answers import Answer, Question
from cluster.errors import InputError
from cluster.parse_json import parse_json
from cluster.read_given import read_given
from cluster.storage.whole_files import write_atomically
from serve.formats.bioasq import MAX_BODY_CHARS, MAX_ID_CHARS, whole_text
from serve.support.ground_sentences import Grounds

TEAM = "citeray"
MAX_WORDS = 250
MAX_PMIDS = 3
MAX_SENTENCE_CHARS = 5000
_PMID = re.compile(r"\s*[0-9]{1,9}\s*")

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GivenSentence:
    """Sentence of task A, with the PMIDs that the topic gives for it."""

    text: str
    existing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroundingTopic:
    """Question of task A, with the sentences of an answer for which evidence is sought."""

    question: Question
    sentences: tuple[GivenSentence, ...]


def read_topics_a(path: Path) -> list[GroundingTopic]:
    """Return task A's topics; each has `meta_data` (or `metadata`) and the sentences in `answer`.

    Raise InputError with the file, record and field for an invalid value or a duplicate id.
    """
    return [
        GroundingTopic(_question(row, "qa_id", where), _sentences(row, where))
        for where, row in _rows(path, "qa_id")
    ]


def read_topics_b(path: Path) -> list[Question]:
    """Return task B's topics; each has `id` (or `topic_id`) and `question`.

    Raise the same errors as `read_topics_a`.
    """
    return [_question(row, "topic_id", where) for where, row in _rows(path, "topic_id")]


def to_entry_a(topic: GroundingTopic, grounds: Sequence[Grounds], run: str) -> Entry:
    """Return one record of a task A run; `write_lines` drops its additional field `id`."""
    question = topic.question
    answer = [
        {
            "text": sentence.text,
            "existing_supported_citations": list(sentence.existing),
            "supported_citations": list(found.supported),
            "contradicted_citations": list(found.contradicted),
        }
        for sentence, found in zip(topic.sentences, grounds, strict=True)
    ]
    metadata = {"team_id": TEAM, "run_id": run, "qa_id": question.id, "question": question.body}
    return {"id": question.id, "metadata": metadata, "answer": answer}


def to_entry_b(question: Question, answer: Answer, run: str) -> Entry:
    """Return one record of a task B run: whole sentences up to the word limit, with PMIDs.

    The verdict and the confidence are in `metadata`, where the track's validation program accepts
    additional fields.
    """
    responses: list[Entry] = []
    words = 0
    for sentence in answer.choice.ideal:
        words += len(sentence.text.split())
        if words > MAX_WORDS:
            break
        responses.append(
            {"text": sentence.text, "citations": [str(p) for p in sentence.pmids[:MAX_PMIDS]]}
        )
    metadata = {"team_id": TEAM, "run_id": run, "topic_id": question.id}
    decided = {"verdict": answer.verdict, "confidence": answer.confidence}
    return {"id": question.id, "metadata": metadata | decided, "responses": responses}


def write_lines(path: Path, entries: Iterable[Entry]) -> None:
    """Write the run atomically, one record per line."""
    rows = [{key: value for key, value in entry.items() if key != "id"} for entry in entries]
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    write_atomically(path, text.encode())


def _rows(path: Path, id_field: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield (place, record) from a JSON list or JSON lines; raise InputError for a duplicate id."""
    text = read_given(path)
    if text.lstrip().startswith("["):
        values = list(enumerate(parse_json(text, str(path)), start=1))
        word = "record"
    else:
        lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
        values = [(n, parse_json(line, f"{path}: line {n}")) for n, line in lines]
        word = "line"
    if not values:
        raise InputError(f"{path}: has no topics")
    seen: set[str] = set()
    for number, row in values:
        where = f"{path}: {word} {number}"
        if not isinstance(row, dict):
            raise InputError(f"{where}: must be an object, not {row!r:.40}")
        id_ = _question(row, id_field, where).id
        if id_ in seen:
            raise InputError(f"{where}: {id_field} {id_!r} occurs twice; give each record its own")
        seen.add(id_)
        yield where, row


def _question(row: Mapping[str, Any], id_field: str, where: str) -> Question:
    inner = row.get("meta_data", row.get("metadata", row))
    if not isinstance(inner, dict):
        raise InputError(f"{where}: field metadata must be an object, not {inner!r:.40}")
    id_ = inner.get(id_field, inner.get("id"))
    if type(id_) is not int and not (isinstance(id_, str) and id_.strip()):
        raise InputError(
            f"{where}: field {id_field} must be a string or whole number, not {id_!r:.40}"
        )
    body = inner.get("question", row.get("question"))
    if not isinstance(body, str) or not body.strip():
        raise InputError(f"{where}: field question must be a string that is not empty")
    return Question(
        _fitting(str(id_).strip(), MAX_ID_CHARS, id_field, where),
        _fitting(" ".join(body.split()), MAX_BODY_CHARS, "question", where),
    )


def _fitting(text: str, most: int, field: str, where: str) -> str:
    if len(text) > most:
        raise InputError(f"{where}: {field} has {len(text)} characters, at most {most}")
    return whole_text(text, field, where)


def _sentences(row: Mapping[str, Any], place: str) -> tuple[GivenSentence, ...]:
    answer = row.get("answer")
    if not isinstance(answer, list) or not answer:
        raise InputError(f"{place}: field answer must be a list of sentences, not {answer!r:.40}")
    found = []
    for number, item in enumerate(answer, start=1):
        where = f"{place}, answer {number}"
        text = item.get("text") if isinstance(item, dict) else None
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{where}: field text must be a string that is not empty")
        given = item.get("existing_supported_citations") or []
        if not isinstance(given, list) or not all(_is_pmid(pmid) for pmid in given):
            raise InputError(
                f"{where}: field existing_supported_citations must be a list of PMIDs, not "
                f"{given!r:.40}"
            )
        text = _fitting(text, MAX_SENTENCE_CHARS, "text", where)
        found.append(GivenSentence(text, tuple(int(pmid) for pmid in given)))
    return tuple(found)


def _is_pmid(value: Any) -> bool:
    return type(value) in (int, str) and _PMID.fullmatch(str(value)) is not None
