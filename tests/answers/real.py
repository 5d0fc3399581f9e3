"""Real citations and questions of BioASQ, read from ../shared next to the repository."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cluster.answers import QuestionType
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from tests.answers.suite import RealRow, load_real_rows

DATA = Path(__file__).resolve().parents[3] / "shared/data/bioasq"
# One in EVERY of the other citations is also in the collection, as a distractor.
EVERY = 40
# Maximum number of citations that contain the `about` words of a row.
MOST_ABOUT = 15


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the PMIDs that experts marked as its documents."""

    row: RealRow
    question: str
    type: QuestionType
    pmids: frozenset[int]


@cache
def _questions(name: str) -> dict[str, dict[str, Any]]:
    data = json.loads((DATA / name).read_text(encoding="utf-8"))
    return {question["id"]: question for question in data["questions"]}


def development_ids() -> frozenset[str]:
    return frozenset(_questions("questions-dev.json"))


def load_questions(suite: str) -> list[Asked]:
    """Return the questions of the suite with their PMIDs."""
    return [_asked(row) for row in load_real_rows(suite)]


def _asked(row: RealRow) -> Asked:
    if row.bioasq is None:
        assert row.question is not None
        return Asked(row, row.question, row.type, frozenset())
    question = _questions("questions-train.json")[row.bioasq]
    assert question["exact_answer"] == row.expected, f"{row.id}: BioASQ's answer is another"
    pmids = frozenset(int(url.rsplit("/", 1)[1]) for url in question["documents"])
    return Asked(row, question["body"], row.type, pmids)


def load_citations(suite: str) -> list[Citation]:
    """Return the citations that the rows need, and a sample of the others."""
    questions = load_questions(suite)
    files = sorted((DATA / "corpus").glob("*.xml.gz"))
    every = [c for file in files for c in read_records(file) if isinstance(c, Citation)]
    wanted = {pmid for asked in questions for pmid in asked.pmids}
    subjects = {asked.row.about.casefold() for asked in questions if asked.row.about}
    texts = {c.pmid: " ".join([c.title, *(s.text for s in c.sections)]).casefold() for c in every}
    for words in subjects:
        named = (pmid for pmid, text in texts.items() if words in text)
        wanted |= set(itertools.islice(named, MOST_ABOUT))
    return [c for n, c in enumerate(every) if c.pmid in wanted or n % EVERY == 0]
