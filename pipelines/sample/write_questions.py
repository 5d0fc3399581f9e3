"""Write the sample's questions (YAML) in BioASQ's JSON format, with exact snippet offsets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.records import ABSTRACT, TITLE, Citation
from pipelines.sample.read_facts import load_yaml

_DOCUMENT = "http://www.ncbi.nlm.nih.gov/pubmed/{}"
_TYPES = ("yesno", "factoid", "list", "summary")


def write_questions(folder: Path, live: Mapping[int, Citation], path: Path) -> int:
    """Write the questions of `folder` (one YAML file per type) to `path` and return their number.

    `live` are the citations of an index of the sample after its updates. Raises InputError if a
    quote is not in the title or abstract of the citation that it names.
    """
    questions = [
        _question(kind, entry, live)
        for kind in _TYPES
        for entry in load_yaml(folder / f"{kind}.yaml")
    ]
    text = json.dumps({"questions": questions}, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return len(questions)


def _question(kind: str, entry: Mapping[str, Any], live: Mapping[int, Citation]) -> dict[str, Any]:
    body = entry["body"]
    question = {
        # A hash of the text, so that adding a question does not change the ids of the others.
        "id": blake2b(body.encode(), digest_size=12).hexdigest(),
        "type": kind,
        "body": body,
        "documents": [_DOCUMENT.format(pmid) for pmid in entry["snippets"]],
        "snippets": [
            _snippet(pmid, quote, live, body) for pmid, quote in _quotes(entry["snippets"])
        ],
        "ideal_answer": [entry["ideal"].strip()],
    }
    if kind != "summary":
        question["exact_answer"] = entry["exact"]
    return question


def _quotes(snippets: Mapping[int, str | list[str]]) -> Iterator[tuple[int, str]]:
    for pmid, quotes in snippets.items():
        for quote in [quotes] if isinstance(quotes, str) else quotes:
            yield pmid, quote.strip()


def _snippet(pmid: int, quote: str, live: Mapping[int, Citation], body: str) -> dict[str, Any]:
    """Return the span of `quote` in the title or canonical abstract: code points, end exclusive."""
    if pmid not in live:
        raise InputError(f"question {body!r}: PMID {pmid} is not in the sample after its updates")
    citation = live[pmid]
    for section, text in ((TITLE, citation.title), (ABSTRACT, citation.abstract)):
        begin = text.find(quote)
        if begin >= 0:
            return {
                "document": _DOCUMENT.format(pmid),
                "beginSection": section,
                "endSection": section,
                "offsetInBeginSection": begin,
                "offsetInEndSection": begin + len(quote),
                "text": quote,
            }
    raise InputError(f"question {body!r}: PMID {pmid} does not hold the quote {quote!r}; copy it")
