"""Stored answers in the form of /v1/answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cluster.answers import Evidence, Question, RankedCitation, Sentence
from cluster.records import Citation, Passage
from tests.serve.answering import answer


def reply(
    *sentences: tuple[int, ...],
    evidence: Sequence[Evidence] = (),
    citations: Sequence[RankedCitation] = (),
    version: str = "v000001",
    name: str = "q1",
) -> dict[str, Any]:
    """Return an answer with one sentence per tuple of PMIDs."""
    found = answer(
        question=Question(name, "Does iron help?", "yesno"),
        ideal=tuple(Sentence(f"Sentence {n}.", pmids, 0.9) for n, pmids in enumerate(sentences)),
        citations=tuple(citations),
        evidence=tuple(evidence),
        index_version=version,
    )
    plain: dict[str, Any] = json.loads(json.dumps(asdict(found)))
    return plain


def evidence_of(citation: Citation, begin: int, end: int, **fields: Any) -> Evidence:
    """Return a passage of the abstract as evidence."""
    passage = Passage(citation.pmid, "abstract", begin, end, citation.abstract[begin:end])
    return Evidence(passage, title=citation.title, year=citation.year, **fields)
