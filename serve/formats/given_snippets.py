"""Read the snippets in a BioASQ file: those of phase B, or of Synergy feedback.

Snippets that a feedback file marks as not golden are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from cluster.answers import Question
from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from cluster.records import ABSTRACT, TITLE, Passage, SectionName
from serve.contracts.request_forms import MAX_GIVEN, GivenPassage, Offset, Pmid, explain_problems


def _pmid_of(address: Any) -> Any:
    """Return the PMID at the end of a URL, `http://www.ncbi.nlm.nih.gov/pubmed/PMID`."""
    if not isinstance(address, str):
        return address
    last = address.rstrip("/").rpartition("/")[2]
    return int(last) if re.fullmatch(r"[0-9]{1,16}", last) else last


def _section_name(section: Any) -> Any:
    """Map section names of older files, such as `sections.0`, to the abstract."""
    return ABSTRACT if isinstance(section, str) and section != TITLE else section


class _Snippet(GivenPassage):
    """Passage that a client gives as evidence, with BioASQ's field names."""

    model_config = ConfigDict(extra="ignore")

    pmid: Annotated[Pmid, BeforeValidator(_pmid_of), Field(alias="document")]
    section: Annotated[SectionName, BeforeValidator(_section_name), Field(alias="beginSection")]
    begin: Annotated[Offset, Field(alias="offsetInBeginSection")]
    end: Annotated[Offset, Field(alias="offsetInEndSection")]
    golden: bool = True


_SNIPPETS = TypeAdapter(list[_Snippet])


def give_snippets(questions: Sequence[Question], paths: Iterable[Path]) -> list[Question]:
    """Return the questions, with the golden snippets that the files have for them in `given`.

    `given` is empty for questions without snippets. Raise InputError with the file, question and
    field for an invalid snippet, for more than `MAX_GIVEN` snippets of one question, and if no
    question has any.
    """
    paths = list(paths)
    given: dict[str, dict[Passage, None]] = {question.id: {} for question in questions}
    for path in paths:
        for number, row in enumerate(read_rows(path)):
            id_ = row.get("id") if isinstance(row, dict) else None
            if isinstance(id_, str) and id_ in given:
                found = _read_snippets(row.get("snippets"), f"{path}: question {number}")
                given[id_].update(dict.fromkeys(found))
    files = ", ".join(map(str, paths))
    if not any(given.values()):
        raise InputError(f"{files}: no question has snippets; leave out --evidence given")
    for id_, passages in given.items():
        if len(passages) > MAX_GIVEN:
            raise InputError(
                f"{files}: id {id_}: {len(passages)} snippets, at most {MAX_GIVEN}; leave some out"
            )
    return [replace(question, given=tuple(given[question.id])) for question in questions]


def _read_snippets(value: Any, where: str) -> list[Passage]:
    try:
        snippets = _SNIPPETS.validate_python(value or [])
    except ValidationError as error:
        problems = [{**p, "loc": ("snippets", *p["loc"])} for p in error.errors()]
        raise InputError(f"{where}: {explain_problems(problems)}") from None
    return [snippet.as_passage() for snippet in snippets if snippet.golden]
