"""Write an answer as a document file in a given format and reference style."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from cluster.answers import Answer
from cluster.errors import InputError
from cluster.records import Citation
from serve.references.documents.number_answer import AnswerDocument, cited_pmids, number_answer
from serve.references.documents.write_docx import write_docx
from serve.references.documents.write_pdf import write_pdf
from serve.references.documents.write_text import write_json, write_markdown, write_text
from serve.references.prepare_for_style import StyleName

FormName = Literal["markdown", "docx", "pdf", "text", "json"]
MOST_REFERENCES = 200
MOST_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class Form:
    """File format of a document. `ending` is the file name extension.

    `title` is the name of its download in menus, or "" for a format that menus do not offer.
    """

    title: str
    ending: str
    media_type: str
    write: Callable[[AnswerDocument], bytes]


FORMS: Mapping[FormName, Form] = {
    "markdown": Form("Markdown", "md", "text/markdown; charset=utf-8", write_markdown),
    "docx": Form(
        "Word (DOCX)",
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        write_docx,
    ),
    "pdf": Form("PDF", "pdf", "application/pdf", write_pdf),
    "text": Form("", "txt", "text/plain; charset=utf-8", write_text),
    "json": Form("", "json", "application/json", write_json),
}


def write_document(
    answer: Answer,
    citations: Iterable[Citation],
    form: FormName,
    style: StyleName = "vancouver",
    day: date | None = None,
    address: str = "",
) -> bytes:
    """Return the file of `answer`, with numbered references, strongest study design first.

    `citations` are the records of `cited_pmids`; a missing record is listed by its PMID. `day` is
    the date of the document (default: today in UTC), `address` the URL of the answer. Raises
    InputError if `answer` is too long.
    """
    check_size(answer)
    written = day or datetime.now(UTC).date()
    return FORMS[form].write(number_answer(answer, citations, style, written, address))


def check_size(answer: Answer) -> None:
    """Raise InputError if the answer has too many references or characters for a document."""
    if (count := len(cited_pmids(answer))) > MOST_REFERENCES:
        raise InputError(
            f"the answer cites {count:,} PMIDs; a document lists {MOST_REFERENCES} at most"
        )
    names = [] if isinstance(answer.exact, str) else [n for g in answer.exact or () for n in g]
    texts = (answer.question.body, *(s.text for s in answer.ideal), *names, *answer.degraded)
    if (size := sum(map(len, texts))) > MOST_CHARACTERS:
        raise InputError(
            f"the answer has {size:,} characters; a document has {MOST_CHARACTERS:,} at most"
        )
