"""Write the sample corpus: three PubMed XML files and forty questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.records import ABSTRACT, TITLE, Citation, Deletion
from pipelines.sample.read_facts import Fact, load_yaml, read_mesh, read_topics
from pipelines.sample.render_articles import render_articles
from pipelines.sample.render_citation import BookChapter

NOTE = "Illustrative record written for CiteRay's sample corpus; not a real publication."

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class SampleCorpus:
    """Files of the sample; `sources` are the two halves of a baseline and an update, in order."""

    sources: tuple[Path, ...]
    questions: Path


def write_sample(directory: Path) -> SampleCorpus:
    """Write the corpus into `directory`, created if missing, with the same bytes every time.

    The update adds two citations, revises one, contains a book article, and deletes one citation.
    Raises InputError if the facts or the questions are invalid.
    """
    directory.mkdir(parents=True, exist_ok=True)
    mesh = read_mesh(_HERE / "mesh.tsv")
    baseline = sorted(
        (
            fact
            for path in sorted((_HERE / "facts").glob("*.yaml"))
            for fact in read_topics(load_yaml(path), path.name, mesh)
        ),
        key=lambda fact: fact.citation.pmid,
    )
    update = load_yaml(_HERE / "update.yaml")
    changes = [
        fact
        for part in ("new", "revised")
        for fact in read_topics(update[part], f"update.yaml, {part}", mesh)
    ]
    half = len(baseline) // 2
    sources = tuple(directory / f"citeray26n000{number}.xml.gz" for number in (1, 2, 3))
    _write(baseline[:half], (), sources[0])
    _write(baseline[half:], (), sources[1])
    _write(changes, _book_and_deletions(update), sources[2])

    live = {fact.citation.pmid: fact.citation for fact in (*baseline, *changes)}
    for pmid in update["deleted"]:
        del live[pmid]
    questions = directory / "questions.json"
    write_questions(_HERE / "questions", live, questions)
    return SampleCorpus(sources, questions)


def _write(facts: list[Fact], others: Iterable[BookChapter | Deletion], path: Path) -> None:
    inline = {plain: marked for fact in facts for plain, marked in fact.inline.items()}

    def records() -> Iterator[Citation | BookChapter | Deletion]:
        for fact in facts:
            yield fact.citation
        yield from others

    render_articles(records(), path, inline=inline, note=NOTE)


def _book_and_deletions(update: Any) -> Iterator[BookChapter | Deletion]:
    yield BookChapter(**update["book"])
    for pmid in update["deleted"]:
        yield Deletion(pmid, source="", position=0)


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
