"""Check whether a benchmark's questions or citations occur in a model's training data.

A model's card (README.md with the Hugging Face front matter `datasets:`, or the `data_config.json`
of sentence-transformers) names its training data. Local files are read and compared. A name without
a local file is only reported, and flagged if it is a biomedical question benchmark.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cluster.errors import InputError
from cluster.parse_json import parse_json
from evaluation.bioasq.read_bioasq import Entry, document_id
from evaluation.lint.note_problems import read_pmid

CARDS = ("README.md", "MODEL_CARD.md")
BENCHMARKS = re.compile(r"bioasq|biogen|medaesqa|mirage", re.IGNORECASE)

_ABOUT_CITATIONS = re.compile(r"pmid|pubmed|doc", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Training data named by the card of `model`: local `files`, and `names` without files."""

    model: str
    files: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    has_card: bool = True


@dataclass(frozen=True, slots=True)
class Leak:
    """The benchmark's questions (ids) and gold documents (PMIDs) that occur in `file`."""

    model: str
    file: str
    questions: tuple[str, ...]
    documents: tuple[str, ...]


def read_card(model: str, folder: Path) -> TrainingData:
    """Return the training data named by the card in `folder`, which relative names refer to."""
    named: list[str] = []
    card = next((folder / name for name in CARDS if (folder / name).is_file()), None)
    config = folder / "data_config.json"
    if card is not None:
        named += _named_in_card(card)
    if config.is_file():
        rows = parse_json(config.read_text(encoding="utf-8"), str(config))
        rows = rows if isinstance(rows, list) else []
        named += [str(row["name"]) for row in rows if isinstance(row, dict) and "name" in row]
    paths = [folder / name for name in named]
    return TrainingData(
        model,
        tuple(path for path in paths if path.is_file()),
        tuple(name for name, path in zip(named, paths, strict=True) if not path.is_file()),
        has_card=card is not None or config.is_file(),
    )


def _named_in_card(card: Path) -> list[str]:
    found = _FRONT_MATTER.match(card.read_text(encoding="utf-8"))
    try:
        matter = yaml.safe_load(found.group(1)) if found else None
    except yaml.YAMLError as error:
        raise InputError(f"{card}: its front matter is not YAML: {error}") from None
    datasets = matter.get("datasets") if isinstance(matter, dict) else None
    return [str(name) for name in datasets] if isinstance(datasets, list) else []


def find_leaks(gold: Mapping[str, Entry], data: TrainingData) -> list[Leak]:
    """Return a Leak for each file of `data` that contains a question or document of `gold`.

    Questions match by id or by their words (letters and digits, ignoring case). Documents match if
    the training data names a PMID in a field about citations. Raises InputError for a file that
    cannot be read.
    """
    by_text = {_plain(entry.body): id_ for id_, entry in gold.items() if entry.body}
    wanted = {document_id(d) for entry in gold.values() for d in entry.documents}
    leaks = []
    for file in data.files:
        questions: set[str] = set()
        documents: set[str] = set()
        for key, text in _strings(file):
            match = text if text in gold else by_text.get(_plain(text))
            if match is not None:
                questions.add(match)
            pmid = str(read_pmid(text))
            if pmid in wanted and _ABOUT_CITATIONS.search(f"{key} {text}"):
                documents.add(pmid)
        if questions or documents:
            leaks.append(
                Leak(data.model, str(file), tuple(sorted(questions)), tuple(sorted(documents)))
            )
    return leaks


def explain_leakage(
    gold: Mapping[str, Entry], data: Sequence[TrainingData]
) -> tuple[list[str], list[str]]:
    """Return (findings, one sentence each; models whose training data could not be read)."""
    wanted = len({document_id(d) for entry in gold.values() for d in entry.documents})
    found, unknown = [], []
    for training in data:
        for leak in find_leaks(gold, training):
            found.append(
                f"leakage: {len(leak.questions)} of {len(gold)} questions and"
                f" {len(leak.documents)} of {wanted} gold documents occur in {leak.file}, the"
                f" training data of {leak.model}"
            )
        if benchmarks := [name for name in training.names if BENCHMARKS.search(name)]:
            found.append(
                f"leakage: {training.model} names {', '.join(benchmarks)} as training data, by name"
                " from benchmarks of biomedical questions; not available for comparison"
            )
        others = [name for name in training.names if not BENCHMARKS.search(name)]
        if others:
            unknown.append(
                f"{training.model} (its card names {len(others)} data sets that are not available)"
            )
        if not training.has_card:
            unknown.append(f"{training.model} (no model card)")
    return found, unknown


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _strings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (field name, text) for every string and number of a training file.

    Reads JSON, JSON lines, or tab-separated lines (no field name); `.gz` files are decompressed.
    """
    name = path.name.removesuffix(".gz")
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8") as file
        ):
            if name.endswith(".json"):
                yield from _walk("", parse_json(file.read(), str(path)))
                return
            for number, line in enumerate(file, start=1):
                if name.endswith((".jsonl", ".ndjson")):
                    if line.strip():
                        yield from _walk("", parse_json(line, f"{path}: line {number}"))
                else:
                    yield from (("", cell.strip()) for cell in line.split("\t"))
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise InputError(f"{path}: training data cannot be read: {error}") from None


def _walk(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(str(name), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(key, inner)
    elif isinstance(value, str):
        yield key, value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield key, str(value)
