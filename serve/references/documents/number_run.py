"""Prepare the answers of a batch for a document, with references numbered for each question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from cluster.answers import NOT_ENOUGH
from cluster.records import Citation
from serve.references.describe_citation import one_line
from serve.references.documents.number_answer import AnswerDocument, Reference, links_of
from serve.references.prepare_for_style import StyleName
from serve.references.style_references import style_references
from serve.wording.verdict_words import DISAGREE, NO_ANSWER

GUESSED = f"{NO_ANSWER} The text below is only the best guess."
VERDICTS = {"answered": "Answered.", "mixed": DISAGREE, NOT_ENOUGH: GUESSED}
SEARCHED = "Searched without an answer."


def pmids_of(entry: Mapping[str, Any]) -> list[int]:
    """Return the PMIDs of the documents of a run's entry, in order, without duplicates."""
    return list(dict.fromkeys(int(url.rpartition("/")[2]) for url in entry["documents"]))


def number_run(
    entries: Iterable[Mapping[str, Any]],
    citations: Iterable[Citation],
    style: StyleName,
    day: date,
) -> list[AnswerDocument]:
    """Return one document for each entry of a run, with the references that `citations` has."""
    held = {citation.pmid: citation for citation in citations}
    styled = {r.pmid: r.runs for r in style_references(list(held.values()), style)}

    def references(pmids: Sequence[int]) -> Iterable[Reference]:
        present = [pmid for pmid in pmids if pmid in styled]
        for number, pmid in enumerate(present, 1):
            yield Reference(number, pmid, styled[pmid], links_of(held[pmid]))

    return [
        AnswerDocument(
            question=one_line(entry["body"]),
            verdict=VERDICTS.get(entry.get("verdict", ""), SEARCHED),
            exact=tuple(_exact(entry)),
            paragraph=tuple(one_line(text) for text in _texts(entry.get("ideal_answer")) if text),
            sides=(),
            closest=(),
            listed="Articles found",
            references=tuple(references(pmids_of(entry))),
            notes=(f"Answered with CiteRay on {day.isoformat()}.",),
        )
        for entry in entries
    ]


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _exact(entry: Mapping[str, Any]) -> Iterable[str]:
    """Yield the exact answers; none for a yes or no on which the sources disagree."""
    value = entry.get("exact_answer")
    if isinstance(value, str):
        if entry.get("verdict") != "mixed":
            yield one_line(value).capitalize()
        return
    for names in value or ():
        first, *others = _texts(names)
        yield one_line(f"{first} ({', '.join(others)})" if others else first)
