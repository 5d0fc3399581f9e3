"""Measure search strategies: gold recall of their hits, beside two simpler strategies.

    python -m benchmarks.bench_strategy QUESTIONS --index INDEX [--limit 100] [--system citeray]

Makes a strategy for questions spread evenly over QUESTIONS (BioASQ's form), at most `--limit` of
them, for each of `--max-hits`, and prints the mean recall of the gold documents among its hits, and
the median and maximum number of hits. The same is printed for the title words (all content words of
the question in [tiab], joined by AND) and for MeSH headings only (the headings of the question's
entities, joined by AND). A question for which a strategy cannot be made counts with no hits.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence

from benchmarks.questions import Row, gold_pmids, overrides, question_parser
from benchmarks.smallest import parse_arguments
from cluster.answers import Question
from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from cluster.index.boolean.expressions import And, Expression
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from serve.contracts.request import Request
from serve.graph.local_graph import local_answerer
from serve.pipeline.answer_question import QuestionAnswerer
from serve.question.field_tags.parse_boolean import parse_boolean
from serve.search.boolean_search import match_all
from serve.strategy.concept_blocks import concept_blocks
from serve.strategy.make_strategy import make_strategy

SMALLEST = "QUESTIONS --index INDEX --limit 4 --max-hits 20"


def spread(rows: Sequence[Row], limit: int) -> list[Row]:
    """Return at most `limit` of the rows, evenly spread."""
    step = max(1, len(rows) // limit)
    return list(rows[::step][:limit])


async def hits_of(answerer: QuestionAnswerer, expression: Expression | None) -> set[int]:
    """Return the PMIDs of all hits; none without an expression or for one that is refused."""
    if expression is None:
        return set()
    try:
        return set((await match_all(answerer.calls(), expression)).pmids.tolist())
    except InputError:
        return set()


async def title_words(body: str, answerer: QuestionAnswerer) -> Expression | None:
    """Return all content words of the question in [tiab], joined by AND."""
    blocks = concept_blocks(body, [], answerer.backend.facts.analyser)
    return And(tuple(block.terms[0] for block in blocks)) if blocks else None


async def headings_only(body: str, answerer: QuestionAnswerer) -> Expression | None:
    """Return the headings of the question's entities, joined by AND."""
    named = await answerer.backend.call("expander", "concepts", body)
    blocks = concept_blocks(body, named, answerer.backend.facts.analyser)
    headings = [term for block in blocks for term in block.terms if term.field == "mh"]
    return And(tuple(headings)) if headings else None


async def strategy_of(request: Request, answerer: QuestionAnswerer, most: int) -> Expression | None:
    """Return the strategy's expression, or None if none can be made."""
    try:
        made = await make_strategy(answerer, request, most)
    except InputError:
        return None
    return parse_boolean(made.pubmed)


def show(name: str, hits: Sequence[set[int]], gold: Sequence[set[int]], seconds: float) -> None:
    recall = [len(h & g) / len(g) for h, g in zip(hits, gold, strict=True)]
    sizes = [len(h) for h in hits]
    print(
        f"{name:20} recall {statistics.mean(recall):.3f}  median hits "
        f"{statistics.median(sizes):6.1f}  most {max(sizes):5d}  {seconds:.2f} s a question",
        flush=True,
    )


async def run(answerer: QuestionAnswerer, rows: Sequence[Row], given: argparse.Namespace) -> None:
    system = load_system(given.system)
    gold = list(map(gold_pmids, rows))
    requests = [Request(Question(row["id"], row["body"], row["type"]), system) for row in rows]
    for most in given.max_hits:
        begun, hits = time.monotonic(), []
        for request in requests:
            hits.append(await hits_of(answerer, await strategy_of(request, answerer, most)))
        show(f"strategy, {most}", hits, gold, (time.monotonic() - begun) / len(rows))
    for name, simple in (("title words", title_words), ("MeSH headings", headings_only)):
        begun, hits = time.monotonic(), []
        for row in rows:
            hits.append(await hits_of(answerer, await simple(row["body"], answerer)))
        show(name, hits, gold, (time.monotonic() - begun) / len(rows))


def main() -> None:
    parser = question_parser(__doc__, limit=100)
    parser.add_argument("--system", default="citeray")
    parser.add_argument("--max-hits", type=int, nargs="+", default=[50, 100, 200, 500])
    given = parse_arguments(parser, SMALLEST)
    answerer = local_answerer(load_settings(given.config, overrides(given, "llm.kind=none")))
    rows = [row for row in read_rows(given.questions) if row.get("documents")]
    chosen = spread(rows, given.limit)
    print(f"{len(chosen)} questions")
    asyncio.run(run(answerer, chosen, given))


if __name__ == "__main__":
    main()
