"""The snippets that a BioASQ file gives with its questions: phase B's, and Synergy's feedback.

A snippet marked as not golden, which feedback files have, is none of a question's evidence.
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
from serve.http.request_forms import MAX_GIVEN, GivenPassage, Offset, Pmid, explain_problems


def _pmid_of(address: Any) -> Any:
    """The number that an address ends in, `http://www.ncbi.nlm.nih.gov/pubmed/PMID`."""
    if not isinstance(address, str):
        return address
    last = address.rstrip("/").rpartition("/")[2]
    return int(last) if re.fullmatch(r"[0-9]{1,16}", last) else last


def _section_name(section: Any) -> Any:
    """Those of older files, such as `sections.0`, are the abstract's."""
    return ABSTRACT if isinstance(section, str) and section != TITLE else section


class _Snippet(GivenPassage):
    """A given passage under BioASQ's names."""

    model_config = ConfigDict(extra="ignore")

    pmid: Annotated[Pmid, BeforeValidator(_pmid_of), Field(alias="document")]
    section: Annotated[SectionName, BeforeValidator(_section_name), Field(alias="beginSection")]
    begin: Annotated[Offset, Field(alias="offsetInBeginSection")]
    end: Annotated[Offset, Field(alias="offsetInEndSection")]
    golden: bool = True


_SNIPPETS = TypeAdapter(list[_Snippet])


def give_snippets(questions: Sequence[Question], paths: Iterable[Path]) -> list[Question]:
    """The questions, each with the golden snippets that the files have under its id.

    A question that has none stays without. Raises InputError naming the file, the question
    and the snippet's field for what has not BioASQ's form, for more than `MAX_GIVEN` snippets
    of one question, and where no question has any.
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


def _read_snippets(value: Any, place: str) -> list[Passage]:
    try:
        snippets = _SNIPPETS.validate_python(value or [])
    except ValidationError as error:
        problems = [{**p, "loc": ("snippets", *p["loc"])} for p in error.errors()]
        raise InputError(f"{place}: {explain_problems(problems)}") from None
    return [snippet.as_passage() for snippet in snippets if snippet.golden]
