"""Replay update files that retract articles, and check which stored answers are found exposed.

    python -m benchmarks.bench_exposure [REAL.xml ...] [--citations 4000] [--retractions 200]
        [--answers 1000] [--updates 4]

Builds an index of generated citations and of the records in REAL, without a model, and stores
`--answers` answers that cite six of them each. Then applies `--updates` files that retract
`--retractions` articles: by the article's own record, by a notice alone, or by a notice about an
article that is not in the index; a quarter are expressions of concern. After each file, audits the
stored answers as `citeray audit` does, and looks up the exposure of each answer as the service
does. Prints the answers that were missed and those found falsely, by the references in the source
files, the time of a lookup, and three questions whose answer changes without the exposed sources.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.smallest import parse_arguments
from cluster.answers import Question
from cluster.pubmed.parse_articles import read_records
from cluster.records import RETRACTED_TYPE, Citation, Link
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from cluster.storage.locations import Location
from evaluation.audit.audit_answers import CITES_DOUBTED, CITES_RETRACTED, audit_answers
from evaluation.audit.read_answers import read_answers
from evaluation.find_citations import CitationLookup
from pipelines.indexing.staging.embed_passages import embed_citations
from pipelines.indexing.staging.read_source import read_source
from pipelines.indexing.staging.stage_citations import ParsedSource, read_account, write_part
from pipelines.sample.generate_citations import generate_citations
from pipelines.sample.render_articles import render_articles
from serve.contracts.request import Request
from serve.pipeline.answer_question import QuestionAnswerer
from tests.pipelines.histories import SmallIndex
from tests.pipelines.staging import SPLITTER
from tests.serve.small_graph import make_answerer, patient_settings, small_backend
from tests.small_index import citation, embed_words

SMALLEST = "--citations 300 --retractions 24 --answers 60 --updates 2"
RETRACTED, DOUBTED = "retracted", "expression of concern"
SOURCES = 6
# PMIDs of notices, and of articles that are cited but not in the index.
FIRST_NOTICE, FIRST_ABSENT = 500_000_000, 600_000_000
BODY = "Does metformin activate AMPK?"
YES = ("Metformin activates AMPK in human muscle.", "Metformin activates AMPK in adults.")
NO = ("Metformin does not activate AMPK in human muscle.", "It does not activate AMPK in adults.")
# The texts of exposed and of other sources of a question.
TURNS = ((YES[:1], ()), (YES, NO[:1]), (NO[:1], YES[:1]))


class XmlIndex(SmallIndex):
    """Index of XML files, which are built and updated without Ray or a model."""

    def stage(self, files: Sequence[Any]) -> tuple[list[Location], list[ParsedSource]]:
        places: list[Location] = []
        for path in files:
            directory = self.path / "staging" / path.name
            directory.mkdir(parents=True, exist_ok=True)
            for table in read_source(path, directory, SPLITTER):
                write_part(embed_citations(table, embed_words, None), directory, self.shards)
            places.append(directory)
        accounts = [account for position in places if (account := read_account(position))]
        return places, accounts


@dataclass
class World:
    """The records in the source files so far, and the state of each article in doubt."""

    held: dict[int, Citation]
    doubts: dict[int, str] = field(default_factory=dict)
    notices: Iterator[int] = field(default_factory=lambda: iter(range(FIRST_NOTICE, 10**9)))

    def plant(self, pmid: int, doubt: str, *, by_notice: bool) -> list[Citation]:
        """Return the records of an update file that puts an article in doubt."""
        self.doubts[pmid] = doubt
        name = "Retraction" if doubt == RETRACTED else "ExpressionOfConcern"
        number, article = next(self.notices), self.held.get(pmid)
        about = Link(f"{name}{'Of' if doubt == RETRACTED else 'For'}", pmid, "A journal")
        notice = Citation(
            number, title="A notice.", languages=("eng",), links=(about,), references=(pmid,)
        )
        self.held[number] = notice
        if by_notice or article is None:
            return [notice]
        types = (*article.publication_types, *([RETRACTED_TYPE] if doubt == RETRACTED else []))
        link = Link(f"{name}In", number, "A journal")
        revised = replace(article, publication_types=types, links=(*article.links, link))
        self.held[pmid] = revised
        return [notice, revised]

    def exposed(self, pmid: int) -> set[str]:
        """Return the kinds of exposure of an article, from the records alone."""
        cited = {self.doubts.get(other) for other in self.held[pmid].references or ()}
        kinds = {CITES_RETRACTED: RETRACTED, CITES_DOUBTED: DOUBTED}
        own = {self.doubts[pmid]} if pmid in self.doubts else set()
        return own | {kind for kind, state in kinds.items() if state in cited}


def make_world(given: argparse.Namespace, rng: random.Random) -> World:
    """Return the generated and the real records; some cite articles that are not in the index.

    One in four generated records keeps its references, so that many answers stay unexposed.
    """
    held = {}
    for record in generate_citations(given.citations, given.seed):
        absent = rng.sample(range(FIRST_ABSENT, FIRST_ABSENT + given.citations // 10), 2)
        kept = (*(record.references or ()), *absent) if rng.random() < 0.25 else ()
        held[record.pmid] = replace(record, references=kept)
    real = [record for path in given.real for record in read_records(path)]
    held |= {record.pmid: record for record in real if isinstance(record, Citation)}
    return World(held, {pmid: RETRACTED for pmid, record in held.items() if record.retracted})


def write_answers(path: Path, world: World, count: int, rng: random.Random) -> list[list[int]]:
    """Store answers with random sources as replies of /v1/answer; return the sources of each."""
    pmids = sorted(world.held)
    cited = [rng.sample(pmids, SOURCES) for _ in range(count)]
    rows = (
        {"question": {"id": str(n)}, "verdict": "answered", "ideal": [{"pmids": own}]}
        for n, own in enumerate(cited)
    )
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return cited


def planted(world: World, count: int, rng: random.Random) -> Iterator[tuple[int, str, bool]]:
    """Yield (PMID, state, whether a notice alone says so) of `count` cited or citable articles."""
    cited = sorted({pmid for c in world.held.values() for pmid in c.references or ()})
    absent = [pmid for pmid in cited if pmid not in world.held]
    inside = [pmid for pmid in sorted(world.held) if pmid < FIRST_NOTICE]
    chosen = rng.sample(inside, count - count // 4) + rng.sample(absent, count // 4)
    rng.shuffle(chosen)
    for number, pmid in enumerate(chosen):
        yield pmid, DOUBTED if number % 4 == 3 else RETRACTED, number % 3 == 2


def served(index: XmlIndex) -> QuestionAnswerer:
    assert index.manifest is not None
    backend = small_backend(index.manifest, index.readers(), ())
    return QuestionAnswerer(backend, patient_settings())


def compare(found: set[tuple[int, int, str]], world: World, cited: list[list[int]]) -> None:
    """Print how many of the true (answer, PMID, kind) were found; end if any is wrong."""
    true = {(n, p, kind) for n, own in enumerate(cited) for p in own for kind in world.exposed(p)}
    answers = {n for n, _, _ in true}
    print(
        f"  {len(answers)} of {len(cited)} answers exposed through {len(true)} sources: "
        f"{len(true - found)} missed, {len(found - true)} false",
        flush=True,
    )
    if true != found:
        raise SystemExit(f"missed {sorted(true - found)[:5]}, false {sorted(found - true)[:5]}")


def by_audit(path: Path, index: Path) -> set[tuple[int, int, str]]:
    lookup = CitationLookup(load_settings(overrides=[f"index.path={index}"]))
    concerns = audit_answers(read_answers(path), lookup).concerns
    kinds = {RETRACTED, DOUBTED, CITES_RETRACTED, CITES_DOUBTED}
    return {
        (int(concern.answer), concern.pmid, reason.kind)
        for concern in concerns
        for reason in concern.reasons
        if reason.kind in kinds
    }


def by_service(
    answerer: QuestionAnswerer, cited: list[list[int]]
) -> tuple[set[tuple[int, int, str]], list[float]]:
    """Return the exposure of each answer as the service looks it up, and the milliseconds."""

    async def look_up() -> None:
        for number, own in enumerate(cited):
            begun = time.perf_counter()
            exposure = await answerer.exposure(own)
            spent.append((time.perf_counter() - begun) * 1000)
            assert exposure is not None
            for source in exposure.exposed:
                kinds = {CITES_RETRACTED: source.retracted, CITES_DOUBTED: source.doubted}
                states = {source.state} | {kind for kind, pmids in kinds.items() if pmids}
                found.update((number, source.pmid, kind) for kind in states if kind)

    found: set[tuple[int, int, str]] = set()
    spent: list[float] = []
    asyncio.run(look_up())
    return found, spent


def show_turns() -> None:
    """Print three questions whose answer changes without the exposed sources."""
    withdrawn = citation(99, "Withdrawn.", publication_types=(RETRACTED_TYPE,))
    for exposed, others in TURNS:
        corpus = [citation(n, text, references=(99,)) for n, text in enumerate(exposed, 1)]
        corpus += [citation(n, text) for n, text in enumerate(others, len(exposed) + 1)]
        answerer = make_answerer(None, [*corpus, withdrawn])
        asked = Request(Question("q", BODY, "yesno"), load_system("bm25"), 10)
        answer = asyncio.run(answerer.answer(asked))
        if answer.exposure is None or answer.exposure.without is None:
            raise SystemExit("no source was found exposed")
        if answer.exposure.without.stays:
            raise SystemExit("the answer does not change")
        print(f"  {BODY} {answer.verdict}, {answer.exact}. {' '.join(answer.caveats)}")


def replay(folder: Path, given: argparse.Namespace) -> None:
    rng = random.Random(given.seed)
    world = make_world(given, rng)
    first = folder / "pubmed26n0001.xml.gz"
    render_articles(world.held.values(), first)
    index = XmlIndex(folder / "index", shards=given.shards)
    index.build([first])
    answers = folder / "answers.jsonl"
    cited = write_answers(answers, world, given.answers, rng)
    spent = by_service(served(index), cited)[1]
    lengths = [sum(len(world.held[p].references or ()) for p in own) for own in cited]
    print(
        f"lookup of {SOURCES} sources with {np.mean(lengths):.0f} references, none exposed: "
        f"median {np.median(spent):.1f} ms, 95% {np.percentile(spent, 95):.1f} ms"
    )
    plants = list(planted(world, given.retractions, rng))
    for number in range(given.updates):
        part = plants[number :: given.updates]
        records = [r for p, doubt, alone in part for r in world.plant(p, doubt, by_notice=alone)]
        path = folder / f"pubmed26n{number + 2:04d}.xml.gz"
        render_articles(records, path)
        index.update([path])
        print(f"{path.name}: {len(part)} articles in doubt")
        compare(by_audit(answers, folder / "index"), world, cited)
        found, spent = by_service(served(index), cited)
        compare(found, world, cited)
    print(f"lookup with exposed sources: median {np.median(spent):.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("real", type=Path, nargs="*", metavar="REAL.xml")
    parser.add_argument("--citations", type=int, default=4000)
    parser.add_argument("--retractions", type=int, default=200)
    parser.add_argument("--answers", type=int, default=1000)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    given = parse_arguments(parser, SMALLEST)
    with tempfile.TemporaryDirectory() as folder:
        replay(Path(folder), given)
    print("answers that turn:")
    show_turns()


if __name__ == "__main__":
    main()
