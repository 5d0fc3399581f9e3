"""Training examples with whole abstracts: PubMedQA's, and findings of trials."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation, abstract_text
from cluster.storage.object_store import File
from pipelines.train.examples.read_lines import read_lines
from pipelines.train.reader.bioasq import embed
from pipelines.train.reader.records import (
    MAYBE,
    NO,
    SILENT,
    YES,
    ReaderExample,
    Stance,
)

ANSWERS: Mapping[str, Stance] = {"yes": YES, "no": NO, "maybe": MAYBE}
# {i} intervention, {c} comparator, {o} outcome. The answer is yes if the outcome increased.
_RAISES = (
    "Does {i} increase {o} compared with {c}?",
    "Does {i} increase {o}?",
    "Compared with {c}, does {i} increase {o}?",
    "Is {o} higher with {i} than with {c}?",
    "Does {i} lead to higher {o} than {c}?",
    "Does {i} raise {o}?",
)
_LOWERS = (
    "Does {i} reduce {o} compared with {c}?",
    "Does {i} decrease {o}?",
    "Does {i} lower {o}?",
    "Compared with {c}, does {i} reduce {o}?",
    "Is {o} lower with {i} than with {c}?",
    "Does {i} lead to less {o} than {c}?",
)
_DIFFERS = (
    "Does {o} differ between {i} and {c}?",
    "Does {i} affect {o} compared with {c}?",
    "Does {i} change {o}?",
    "Is there a difference in {o} between {i} and {c}?",
)
_SAME = (
    "Is {o} similar with {i} and {c}?",
    "Is there no difference in {o} between {i} and {c}?",
    "Does {i} leave {o} unchanged compared with {c}?",
)
# Share of findings whose evidence is read without the abstract around it.
_ALONE = 0.2
# Number of characters that always fit into one window of the reader.
_WINDOW = 1300
# The text before the evidence is used as an example only if it is longer than this.
_LEAST_BEFORE = 300
_EFFECTS = {"increased": 1, "decreased": -1, "no difference": 0}


@dataclass(frozen=True, slots=True)
class AbstractQuestion:
    """A question asked of one whole abstract."""

    question: str
    stance: Stance
    pmid: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What a trial found: `effect` is 1, -1 or 0 for increased, decreased and no difference."""

    pmid: int
    intervention: str
    comparator: str
    outcome: str
    effect: int
    evidence: str
    in_abstract: bool


def read_abstracts(sources: Sequence[File]) -> dict[int, Citation]:
    """Read the citations of PubMed XML files that have an abstract, by PMID."""
    return {
        record.pmid: record
        for source in sources
        for record in read_records(source)
        if isinstance(record, Citation) and record.sections
    }


def read_abstract_questions(path: Path) -> list[AbstractQuestion]:
    """Read PubMedQA's questions: `question`, `answer` (yes, no, maybe) and `pmid`.

    Raises InputError for an invalid row.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["questions"]
        return [
            AbstractQuestion(str(r["question"]), ANSWERS[r["answer"]], int(r["pmid"])) for r in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: not questions on abstracts ({error!r}); each needs `question`, `answer` "
            "(yes, no or maybe) and `pmid`"
        ) from error


def read_findings(path: Path) -> list[Finding]:
    """Read findings of trials from JSON lines; raises InputError for an invalid row."""
    findings = []
    for number, row in read_lines(path):
        try:
            findings.append(_finding(row))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path}, line {number}: not a finding ({error!r}); it needs `pmid`, "
                "`intervention`, `comparator`, `outcome`, `label`, `evidence` and `in_abstract`"
            ) from error
    return findings


def _finding(row: Mapping[str, Any]) -> Finding:
    return Finding(
        pmid=int(row["pmid"]),
        intervention=str(row["intervention"]),
        comparator=str(row["comparator"]),
        outcome=str(row["outcome"]),
        effect=_EFFECTS[row["label"]],
        evidence=str(row["evidence"]),
        in_abstract=bool(row["in_abstract"]),
    )


def ask_of(
    finding: Finding, draw: random.Random, intervention: str | None = None
) -> tuple[str, Stance]:
    """Return a question about `finding` in words drawn at random, and its answer."""
    kind = draw.random()
    forms: tuple[str, ...]
    if kind < 0.35:
        forms, stance = _RAISES, YES if finding.effect > 0 else NO
    elif kind < 0.7:
        forms, stance = _LOWERS, YES if finding.effect < 0 else NO
    elif kind < 0.85:
        forms, stance = _DIFFERS, YES if finding.effect else NO
    else:
        forms, stance = _SAME, NO if finding.effect else YES
    question = draw.choice(forms).format(
        i=intervention or finding.intervention, c=finding.comparator, o=finding.outcome
    )
    return question[:1].upper() + question[1:], stance


def trial_examples(
    findings: Sequence[Finding], abstracts: Mapping[int, Citation], draw: random.Random
) -> Iterator[ReaderExample]:
    """Yield two questions per finding, and for a third of them one whose text has no answer."""
    for finding in findings:
        for _ in range(2):
            question, stance = ask_of(finding, draw)
            yield ReaderExample(question, _trial_text(finding, abstracts, draw), 1.0, stance)
        if draw.random() < 0.35:
            question, _ = ask_of(finding, draw)
            other = draw.choice(findings)
            abstract = abstracts[finding.pmid].abstract
            if draw.random() < 0.3 and abstract.find(finding.evidence) > _LEAST_BEFORE:
                # The abstract before the evidence has no answer; the title is omitted, as it may.
                text = abstract.partition(finding.evidence)[0]
            elif draw.random() < 0.5 and other.intervention != finding.intervention:
                # The same outcome and text, but another intervention.
                question, _ = ask_of(finding, draw, other.intervention)
                text = _trial_text(finding, abstracts, draw)
            elif other.pmid != finding.pmid:
                text = _trial_text(other, abstracts, draw)
            else:
                continue
            yield ReaderExample(question, text, 0.0, SILENT, (), weight=0.7)


def _trial_text(finding: Finding, abstracts: Mapping[int, Citation], draw: random.Random) -> str:
    citation = abstracts[finding.pmid]
    begin = citation.search_text.find(finding.evidence) if finding.in_abstract else -1
    if begin >= 0:
        return _around(citation.search_text, begin, begin + len(finding.evidence), draw)
    if draw.random() < 0.5:
        return finding.evidence
    # The finding is in the full text but not in the abstract: combine both.
    return embed(finding.evidence, citation.search_text, draw, most=5)


def _around(text: str, begin: int, end: int, draw: random.Random) -> str:
    """Return the evidence at `begin` to `end`, alone or in a text whose last window holds it.

    Training keeps only the end of a text that is too long, as most abstracts of trials are.
    """
    if draw.random() < _ALONE:
        return text[begin:end]
    if len(text) - begin > _WINDOW or draw.random() < 0.3:
        return text[: min(len(text), end + draw.randint(0, 500))]
    return text


def abstract_examples(
    questions: Sequence[AbstractQuestion], abstracts: Mapping[int, Citation], draw: random.Random
) -> Iterator[ReaderExample]:
    """Yield each question with its abstract, whole and in part, and with another abstract."""
    for question in questions:
        citation = abstracts[question.pmid]
        whole = citation.abstract if draw.random() < 0.5 else citation.search_text
        yield ReaderExample(question.question, whole, 1.0, question.stance)
        part = last_sections(citation, draw.choice([1, 2]))
        yield ReaderExample(question.question, part, 1.0, question.stance)
        other = draw.choice(questions)
        if other.pmid != question.pmid:
            text = last_sections(abstracts[other.pmid], 2)
            yield ReaderExample(question.question, text, 0.0, SILENT)


def last_sections(citation: Citation, count: int) -> str:
    """Return the last `count` sections of the abstract, each with its label."""
    return abstract_text(citation.sections[-count:])
