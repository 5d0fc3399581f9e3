"""Read people's judgements of the citations in TREC BioGen answers, in all published forms."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cluster.errors import InputError
from cluster.read_given import read_given
from evaluation.biogen.read_biogen import id_of, items, object_of, pmid_of, records, text

Relation = Literal["support", "partial", "contradict", "neutral", "irrelevant", "unknown"]
"""Relation of a document to a sentence: partial is partial support, unknown is not judged."""

# Ordered from the weakest to the strongest relation.
_SPELLINGS: Mapping[Relation, tuple[str, ...]] = {
    "irrelevant": ("not relevant", "irrelevant", "invalid citation"),
    "neutral": ("neutral",),
    "contradict": ("contradict", "contradicts", "contradicted", "contradicting"),
    "partial": (
        *("partial", "partial support", "partial supported", "partially support"),
        *("partially supports", "partially supported", "partially supporting"),
    ),
    "support": ("support", "supports", "supported", "supporting"),
}
_RELATIONS = {word: relation for relation, words in _SPELLINGS.items() for word in words}
_STRENGTH = {relation: position for position, relation in enumerate(_SPELLINGS)}
_MARKS = re.compile(r"\[(?:PMIDs?:?)?\d+(?:[,;]\d+)*\]", re.IGNORECASE)
_DASHES = re.compile("[\u2013\u2014]")
_DOTS = re.compile(r"\.{2,}")
_PMID_LINE = re.compile(r"^\s*pmid:\s*(\d+)", re.IGNORECASE | re.MULTILINE)
_CSV_FIELDS = ("qid", "answer_sentence", "citation", "judgement")


@dataclass(frozen=True, slots=True)
class Labels:
    """People's judgements: topic, then sentence (`sentence_key`, or number from 1), then PMID."""

    by_topic: Mapping[str, Mapping[str | int, Mapping[int, Relation]]] = field(default_factory=dict)

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics that have labels, in the order read."""
        return tuple(self.by_topic)

    def of(self, topic: str, number: int, text: str) -> dict[int, Relation]:
        """Return a sentence's labels by PMID; labels by text take precedence over numbers."""
        sentences = self.by_topic.get(topic, {})
        return {**sentences.get(number, {}), **sentences.get(sentence_key(text), {})}

    def relevant(self, topic: str) -> set[int]:
        """Return the PMIDs relevant to any sentence of the topic, including neutral ones."""
        return {
            pmid
            for labelled in self.by_topic.get(topic, {}).values()
            for pmid, relation in labelled.items()
            if relation != "irrelevant"
        }


def sentence_key(text: str) -> str:
    """Return a key that ignores white space, the kind of dash and the number of dots.

    The track's program ignores these differences too. Citation marks such as `[123, 456]` are also
    ignored, because some answers have their citations in the text and others in a separate field.
    """
    bare = _MARKS.sub("", "".join(text.split()))
    return _DOTS.sub("...", _DASHES.sub("-", bare))


Label = tuple[str, str | int, int, Relation]


def read_labels(path: Path) -> Labels:
    """Read people's labels in any of four forms; a file has one form.

    - CiteRay's JSON lines: `topic_id`, `pmid`, `relation`, and either `sentence` (its text) or
      `sentence_number` (from 1). Relations are the words of `Relation` except "unknown".
    - MedAESQA's JSON (Gupta et al. 2025, doi 10.1038/s41597-025-05233-z; the BioGen 2024
      assessments have the same form): `citation_assessment` of each sentence of all systems.
    - Task A with `supported_citations_labels` and `contradicted_citations_labels`,
      {PMID: label}, in each sentence (starter-kit-2025, `task_a_eval.py`).
    - CSV, a name ending in .csv, with qid, answer_sentence, citation and judgement (same
      program); as there, a row whose citation has no line `PMID: ...` is skipped.

    If a citation has several labels, the last counts, as in the track's program; in MedAESQA the
    strongest of the question counts, in the order support, partial, contradict, neutral, irrelevant
    (its own program counts a citation both as supporting and as contradicting). Raises InputError
    naming the file, the place and the field.
    """
    rows = _csv_labels(path) if path.suffix.lower() == ".csv" else _json_labels(path)
    found: dict[str, dict[str | int, dict[int, Relation]]] = {}
    for topic, sentence, pmid, relation in rows:
        found.setdefault(topic, {}).setdefault(sentence, {})[pmid] = relation
    if not found:
        raise InputError(f"{path}: contains no label; name the file of judgements")
    return Labels(found)


def _json_labels(path: Path) -> Iterator[Label]:
    for position, row in records(path):
        if "machine_generated_answers" in row:
            yield from sorted(_medaesqa(row, position), key=lambda label: _STRENGTH[label[3]])
        elif "answer" in row:
            yield from _task_a_labels(row, position)
        else:
            yield _plain_label(row, position)


def _plain_label(row: Mapping[str, Any], where: str) -> Label:
    number = row.get("sentence_number")
    if "sentence" in row:
        sentence: str | int = sentence_key(text(row, "sentence", where))
    elif type(number) is int and number >= 1:
        sentence = number
    else:
        raise InputError(
            f"{where}: needs the field sentence or sentence_number (from 1), not {number!r:.40}"
        )
    topic, pmid = id_of(row, "topic_id", where), pmid_of(row.get("pmid"), f"{where}: field pmid")
    return topic, sentence, pmid, _relation(row.get("relation"), f"{where}: field relation")


def _medaesqa(row: Mapping[str, Any], position: str) -> Iterator[Label]:
    topic = id_of(row, "question_id", position)
    answers = object_of(row["machine_generated_answers"], f"{position}: machine_generated_answers")
    for system, answer in answers.items():
        within = f"{position}, {system}"
        for where, sentence in items(object_of(answer, within), "answer_sentences", within):
            if sentence.get("citation_assessment") is None:
                continue
            key = sentence_key(text(sentence, "answer_sentence", where))
            for spot, item in items(sentence, "citation_assessment", where):
                pmid = pmid_of(item.get("cited_pmid"), f"{spot}: field cited_pmid")
                relation = item.get("evidence_relation")
                yield topic, key, pmid, _relation(relation, f"{spot}: field evidence_relation")


def _task_a_labels(row: Mapping[str, Any], position: str) -> Iterator[Label]:
    topic = id_of(object_of(row.get("metadata"), f"{position}: field metadata"), "qa_id", position)
    for where, item in items(row, "answer", position):
        key = sentence_key(text(item, "text", where))
        for name in ("supported_citations_labels", "contradicted_citations_labels"):
            spot = f"{where}: field {name}"
            for pmid, label in object_of(item.get(name), spot).items():
                yield topic, key, pmid_of(pmid, spot), _relation(label, spot)


def _csv_labels(path: Path) -> Iterator[Label]:
    reader = csv.DictReader(io.StringIO(read_given(path), newline=""))
    try:
        for row in reader:
            position = f"{path}: line {reader.line_num}"
            for name in _CSV_FIELDS:
                if not row.get(name):
                    raise InputError(f"{position}: field {name} is missing or empty; fill it in")
            pmid = _PMID_LINE.search(row["citation"])
            if pmid:
                found = _relation(row["judgement"], f"{position}: field judgement")
                number = pmid_of(pmid[1], f"{position}: field citation")
                yield row["qid"].strip(), sentence_key(row["answer_sentence"]), number, found
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: not CSV: {error}") from None


def _relation(value: Any, where: str) -> Relation:
    word = " ".join(re.split(r"[\s_-]+", value.strip().lower())) if isinstance(value, str) else ""
    if word not in _RELATIONS:
        raise InputError(f"{where}: must be one of {', '.join(_STRENGTH)}, not {value!r:.40}")
    return _RELATIONS[word]
