"""Load the tables of questions with expected answers, and reject malformed tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from cluster.answers import QuestionType
from cluster.records import Citation, Section

TABLES = Path(__file__).with_name("tables")
FIRST_PMID = 95_000_001
SUITES = ("yes_no", "unanswerable", "named")
# Suites over real citations: BioASQ's questions, and ours with true or false premises.
REAL_SUITES = ("real", "premises")

Polarity = Literal["yes", "no", "mixed"]
Text = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Text, ...], Field(min_length=1)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TableCitation(Strict):
    """A citation written for the tables."""

    pmid: Annotated[int, Field(ge=FIRST_PMID)]
    title: Text
    text: Text

    def record(self) -> Citation:
        return Citation(pmid=self.pmid, title=self.title, sections=(Section("", self.text),))


class Row(Strict):
    """A question, its evidence and the answer that the evidence allows.

    `expected` is a polarity for a yes/no question and lists of synonyms for named things; None
    means that the collection cannot answer. `forbidden` are names of the wrong type.
    """

    id: Text
    question: Text
    type: QuestionType
    expected: Polarity | tuple[Names, ...] | None = None
    forbidden: tuple[Text, ...] = ()
    evidence: tuple[TableCitation, ...] = ()

    @model_validator(mode="after")
    def _expectation_fits_type(self) -> Row:
        if isinstance(self.expected, str) and self.type != "yesno":
            raise ValueError(f"{self.id}: expects {self.expected}, but its type is {self.type}")
        if isinstance(self.expected, tuple) and self.type not in ("factoid", "list"):
            raise ValueError(f"{self.id}: expects names, but its type is {self.type}")
        if self.expected is not None and not self.evidence:
            raise ValueError(f"{self.id}: expects an answer, but brings no evidence")
        return self

    @property
    def pmids(self) -> frozenset[int]:
        return frozenset(c.pmid for c in self.evidence)

    @property
    def kind(self) -> str:
        """The expected polarity, or "named" or "unanswerable"."""
        if isinstance(self.expected, str):
            return self.expected
        return "named" if self.expected else "unanswerable"


class RealRow(Strict):
    """Question over real citations: one of BioASQ's with the id `bioasq`, or one of ours.

    Citations that contain `about` answer ours; without `about`, it is unanswerable.
    """

    id: Text
    bioasq: str | None = None
    question: str | None = None
    about: str | None = None
    type: QuestionType = "yesno"
    expected: Polarity | None = None

    @model_validator(mode="after")
    def _has_one_question(self) -> RealRow:
        if (self.bioasq is None) == (self.question is None):
            raise ValueError(f"{self.id}: needs either `bioasq` or `question`")
        if ((self.bioasq or self.about) is None) != (self.expected is None):
            raise ValueError(f"{self.id}: what is expected needs `bioasq` or `about`")
        return self


class Wording(Strict):
    """One way to ask about a fact, and the answer that the fact gives to it."""

    ask: Text
    answer: Literal["yes", "no"]


class RewordedFact(Strict):
    """A fact that the citations `pmids` state, asked in several wordings.

    `stated` is a sentence of one of these citations, word for word. `source` says whether they
    belong to the sample corpus or to PubMed's abstracts of randomised trials.
    """

    id: Text
    source: Literal["sample", "trials"]
    pmids: Annotated[tuple[int, ...], Field(min_length=1)]
    stated: Text
    wordings: Annotated[tuple[Wording, ...], Field(min_length=2)]


_ROWS = TypeAdapter(tuple[Row, ...])
_REAL_ROWS = TypeAdapter(tuple[RealRow, ...])
_REWORDED = TypeAdapter(tuple[RewordedFact, ...])
_CITATIONS = TypeAdapter(tuple[TableCitation, ...])


def _read(path: Path) -> Any:
    # CSafeLoader is also safe, and ten times faster.
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


@cache
def load_suite(name: str) -> tuple[Row, ...]:
    """Return the rows of a suite, in the order of its files; ValidationError for a bad row."""
    files = sorted((TABLES / name).glob("*.yaml"))
    return tuple(row for file in files for row in _ROWS.validate_python(_read(file)))


@cache
def load_real_rows(name: str) -> tuple[RealRow, ...]:
    """Return the rows of one of `REAL_SUITES`."""
    return _REAL_ROWS.validate_python(_read(TABLES / f"{name}.yaml"))


@cache
def load_reworded_facts() -> tuple[RewordedFact, ...]:
    """Return the facts of `rewordings.yaml`; raises ValidationError for a malformed one."""
    return _REWORDED.validate_python(_read(TABLES / "rewordings.yaml"))


def load_all_rows() -> list[Row]:
    """Return the rows of all suites over the written citations."""
    return [row for name in SUITES for row in load_suite(name)]


def load_collection(rows: Sequence[Row]) -> tuple[Citation, ...]:
    """Return the citations of `rows` and the background by PMID; ValueError if one repeats."""
    background = _CITATIONS.validate_python(_read(TABLES / "background.yaml"))
    citations = [*(c for row in rows for c in row.evidence), *background]
    twice = [pmid for pmid, count in Counter(c.pmid for c in citations).items() if count > 1]
    if twice:
        raise ValueError(f"tests/answers/tables: more than one citation has PMID {twice}")
    return tuple(c.record() for c in sorted(citations, key=lambda c: c.pmid))
