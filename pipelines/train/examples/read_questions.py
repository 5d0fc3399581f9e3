"""Read questions with their gold citations, and the texts of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from cluster.storage.object_store import File


@dataclass(frozen=True, slots=True)
class Corpus:
    """The searchable texts of citations, and the row of each PMID."""

    texts: tuple[str, ...]
    rows: dict[int, int]

    def text(self, pmid: int) -> str:
        """Return the text of a citation. Raises KeyError if the corpus does not have it."""
        return self.texts[self.rows[pmid]]


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question; `gold` are the rows of citations that answer it."""

    text: str
    gold: frozenset[int]


def read_corpus(sources: Sequence[File]) -> Corpus:
    """Read every citation of `sources` with a text; the last record of a PMID is used.

    All texts are held in memory, about 2 GB per million whole abstracts. Raises SourceError for a
    file that cannot be read to its end, and InputError if no citation has a text.
    """
    texts: dict[int, str] = {}
    for source in sources:
        for record in read_records(source):
            if isinstance(record, Citation) and record.search_text:
                texts[record.pmid] = record.search_text
    if not texts:
        raise InputError("no citation of the corpus has a text: pass PubMed XML files as --corpus")
    return Corpus(tuple(texts.values()), {pmid: row for row, pmid in enumerate(texts)})


def read_questions(paths: Sequence[Path], corpus: Corpus) -> list[GoldQuestion]:
    """Read the questions of BioASQ files that have gold citations in `corpus`, in order.

    Raises InputError for a row without body or documents, or if no question is left.
    """
    questions = []
    for path in paths:
        for position, row in enumerate(read_rows(path)):
            text, pmids = _row(row, f"{path}: question {position}")
            gold = frozenset(corpus.rows[pmid] for pmid in pmids if pmid in corpus.rows)
            if gold:
                questions.append(GoldQuestion(text, gold))
    if not questions:
        names = ", ".join(map(str, paths))
        raise InputError(
            f"{names}: no question has a gold document in the corpus; pass PubMed files with "
            "their gold documents as --corpus"
        )
    return questions


def _row(row: Any, where: str) -> tuple[str, list[int]]:
    try:
        documents = [d["id"] if isinstance(d, dict) else d for d in row["documents"]]
        return str(row["body"]), [int(str(d).rsplit("/", 1)[-1]) for d in documents]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{where}: not a question with gold documents ({error!r}); it needs `body` and "
            "`documents`, whose last path component is a PMID"
        ) from error
