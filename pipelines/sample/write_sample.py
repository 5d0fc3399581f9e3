"""Write the sample corpus: three PubMed XML files and forty questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.records import Citation, Deletion
from pipelines.sample.read_facts import Fact, load_yaml, read_mesh, read_topics
from pipelines.sample.render_articles import render_articles
from pipelines.sample.render_citation import BookChapter
from pipelines.sample.write_questions import write_questions

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
