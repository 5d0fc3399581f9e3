"""Blind rating sheet for two raters: ideal answers of one or more runs without run names.

The criteria and the scale of 1 to 5 are BioASQ's manual scores, as in paper 000, Table 7.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster.errors import InputError
from evaluation.bioasq.read_bioasq import read_gold, read_run
from evaluation.biogen.read_biogen import read_task_b
from evaluation.lint.lint_run import read_run_file
from serve.formats.bioasq import document_url
from serve.formats.biogen import read_topics_b

CRITERIA = {
    "Readability": "the answer is fluent and easy to read",
    "Recall": "it has all the necessary information",
    "Precision": "it has no irrelevant information",
    "Repetition": "it says nothing more than once",
}
SCALE = {1: "very poor", 2: "poor", 3: "acceptable", 4: "good", 5: "excellent"}


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of an answer, with the addresses of the documents that it cites."""

    text: str
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BlindAnswer:
    """An answer to rate. `id` is the question's number and its own, such as "3-1"."""

    id: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class RatedQuestion:
    """A question with its gold answers, if any, and the answers to rate."""

    body: str
    references: tuple[str, ...]
    answers: tuple[BlindAnswer, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet to rate. `id` is a digest of the questions.

    `key` gives the (question id, run) of each answer.
    """

    id: str
    questions: tuple[RatedQuestion, ...]
    key: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Question:
    body: str
    references: tuple[str, ...] = ()


Answers = Mapping[str, tuple[Passage, ...]]


def make_sheet(
    runs: Mapping[str, Path],
    questions: Path,
    run_format: str | None = None,
    *,
    sample: int = 0,
    seed: int = 0,
) -> Sheet:
    """Return a sheet of the runs' answers to a sample of `sample` questions, or all for 0.

    The order of the answers to a question is random, so that the position does not reveal the run.
    `seed` determines both draws. An answer without text is left out. Raises InputError for runs of
    two forms, for BioGen's task A, whose sentences are not written by the runs, and if there is
    nothing to rate.
    """
    read = _read_biogen if _is_biogen(runs, run_format) else _read_bioasq
    asked, said = read(runs, questions)
    known = [id_ for id_ in asked if any(answers.get(id_) for answers in said.values())]
    if not known:
        raise InputError(f"no run has an ideal answer to a question of {questions}")
    if sample:
        drawn = set(random.Random(seed).sample(known, min(sample, len(known))))
        known = [id_ for id_ in known if id_ in drawn]
    rated: list[RatedQuestion] = []
    key: dict[str, tuple[str, str]] = {}
    for place, id_ in enumerate(known, start=1):
        names = [name for name, answers in said.items() if answers.get(id_)]
        random.Random(f"{seed} {id_}").shuffle(names)
        own = {f"{place}-{number}": name for number, name in enumerate(names, start=1)}
        key |= {answer: (id_, name) for answer, name in own.items()}
        answers = tuple(BlindAnswer(answer, said[name][id_]) for answer, name in own.items())
        rated.append(RatedQuestion(asked[id_].body, asked[id_].references, answers))
    return Sheet(_digest(rated), tuple(rated), key)


def _is_biogen(runs: Mapping[str, Path], run_format: str | None) -> bool:
    forms = {run: read_run_file(run, run_format).format for run in runs.values()}
    for run, form in forms.items():
        if form == "biogen-a":
            raise InputError(
                f"{run}: BioGen's task A has given sentences; the run has no answers to rate"
            )
    (first, form), *others = forms.items()
    for run, theirs in others:
        if (theirs == "biogen-b") != (form == "biogen-b"):
            raise InputError(
                f"{run}: its form is {theirs}, and that of {first} is {form}; make a sheet of each"
            )
    return form == "biogen-b"


def _digest(questions: Sequence[RatedQuestion]) -> str:
    text = json.dumps([asdict(question) for question in questions])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _read_bioasq(
    runs: Mapping[str, Path], questions: Path
) -> tuple[Mapping[str, _Question], Mapping[str, Answers]]:
    gold = read_gold(questions)
    said = {
        name: {
            id_: (Passage(text, entry.documents),)
            for id_, entry in read_run(run, gold).items()
            if (text := " ".join(entry.ideal).strip())
        }
        for name, run in runs.items()
    }
    return {id_: _Question(entry.body, entry.ideal) for id_, entry in gold.items()}, said


def _read_biogen(
    runs: Mapping[str, Path], questions: Path
) -> tuple[Mapping[str, _Question], Mapping[str, Answers]]:
    asked = {topic.id: _Question(topic.body) for topic in read_topics_b(questions)}
    said = {
        name: {
            id_: tuple(Passage(s.text, tuple(map(document_url, s.pmids))) for s in sentences)
            for id_, sentences in read_task_b(run, asked).items()
        }
        for name, run in runs.items()
    }
    return asked, said
