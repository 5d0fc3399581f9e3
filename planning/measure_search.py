"""Times what a question asks of each stage; see Serving."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from statistics import median
from typing import TYPE_CHECKING

from cluster.index.bm25 import Bm25Query
from cluster.index.manifest import SegmentEntry, ShardEntry
from cluster.index.read_shard import ShardQuery, ShardReader
from cluster.index.vectors import Vectors
from cluster.places import Place
from cluster.records import Citation
from cluster.settings import Settings, SystemSettings
from planning.coefficients import Point
from planning.watch_processes import Cost, in_fresh_process
from serve.search_citations import query_weights

if TYPE_CHECKING:
    from serve.language_model import ChatModel
    from serve.rerank_passages import Reranker

KINDS = ("statistics", "dense", "bm25", "search", "fetch")
FETCHED = 20


def point(spent: Sequence[float], concurrent: int = 1) -> Point:
    """The median and 95th percentile (nearest rank) of seconds."""
    ordered = sorted(spent)
    last = ordered[ceil(0.95 * len(ordered)) - 1]
    return Point(concurrent=concurrent, median_seconds=median(ordered), p95_seconds=last)


def timed(work: Callable[[], object], threads: int = 1) -> float:
    """Seconds that `work` takes where `threads` cores are free; 0 threads: by the clock.

    The clock of a machine that others use too says little of one that serves alone: where
    the threads kept cores busy for less, that counts.
    """
    begun, busy = time.perf_counter(), time.process_time()
    work()
    spent, busy = time.perf_counter() - begun, time.process_time() - busy
    return min(spent, busy / threads) if threads else spent


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions with their vectors, as a shard gets them."""

    questions: tuple[str, ...]
    vectors: Vectors
    system: SystemSettings


def search_spent(
    reader: ShardReader, entry: SegmentEntry, asked: Asked, settings: Settings
) -> dict[str, list[float]]:
    """Seconds of each kind of call, for each question, over one open shard."""
    retrieve = asked.system.retrieve
    over = retrieve.bm25_over
    units = entry.citations if over == "citations" else entry.passages
    mean = entry.terms.get(over, 0) / max(units, 1)
    spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for question, vector in zip(asked.questions, asked.vectors, strict=True):
        weights = query_weights(question, (), 0.0)
        terms = list(weights)
        counts = reader.frequencies(terms, over)
        spent["statistics"].append(timed(partial(reader.frequencies, terms, over)))
        k1, b = settings.index.bm25_k1, settings.index.bm25_b
        bm25 = Bm25Query(weights, counts, units, mean, k1, b)
        limits = (retrieve.dense, retrieve.bm25, over)
        queries = {
            "dense": ShardQuery(vector, None, *limits),
            "bm25": ShardQuery(None, bm25, *limits),
            "search": ShardQuery(vector, bm25, *limits),
        }
        for kind, query in queries.items():
            spent[kind].append(timed(partial(reader.search, query)))
        pmids = reader.search(queries["search"]).pmids[:FETCHED].tolist()
        spent["fetch"].append(timed(partial(reader.fetch, pmids, vector)))
    return spent


@dataclass(frozen=True, slots=True)
class Searched:
    """One shard's size, the seconds of each call, and what the reader's process needed."""

    citations: int
    passages: int
    spent: dict[str, list[float]]
    peak_bytes: int

    def median(self, kind: str) -> float:
        return median(self.spent[kind])


def _search(
    index: Place, entry: SegmentEntry, asked: Asked, settings: Settings
) -> dict[str, list[float]]:
    chosen = settings.index
    reader = ShardReader(
        index,
        0,
        ShardEntry(segments=(entry,)),
        ef_search=chosen.ef_search,
        # Small samples stand for large shards, which are searched by their graph.
        exact_below=0,
    )
    search_spent(reader, entry, asked, settings)
    return search_spent(reader, entry, asked, settings)


def measure_searching(
    index: Place, entry: SegmentEntry, asked: Asked, settings: Settings
) -> Searched:
    """Search one shard in a process of its own; a first round warms the mapped files."""
    cost: Cost[dict[str, list[float]]] = in_fresh_process(_search, index, entry, asked, settings)
    return Searched(entry.citations, entry.passages, cost.result, cost.peak_bytes)


def measure_batches(
    work: Callable[[Sequence[str]], object], questions: Sequence[str], batch: int, *, threads: int
) -> tuple[Point, ...]:
    """`work` of one question at a time, and of as many at once as the stage's batch holds."""
    work(questions[:1])
    points = [point([timed(partial(work, [q]), threads) for q in questions])]
    if batch > 1:
        together = [questions[n % len(questions)] for n in range(batch)]
        points.append(point([timed(partial(work, together), threads) for _ in range(2)], batch))
    return tuple(points)


def measure_reranking(
    reranker: Reranker,
    asked: Asked,
    citations: Sequence[Citation],
    settings: Settings,
    threads: int,
) -> tuple[Point, ...]:
    depth = asked.system.rerank.depth
    if not depth:
        return ()
    length = settings.split.size if settings.split.method != "sections" else 1000
    texts = [f"{c.title} {c.abstract[:length]}" for c in citations if c.abstract]

    def score(questions: Sequence[str]) -> None:
        # Each question has citations of its own, or those that repeat would be scored once.
        pairs = [
            (question, texts[(n * depth + i) % len(texts)])
            for n, question in enumerate(questions)
            for i in range(depth)
        ]
        reranker.score_pairs(pairs)

    return measure_batches(
        score, asked.questions[:12], settings.serve.reranker.batch, threads=threads
    )


async def _chat_together(model: ChatModel, prompt: str, tokens: int, count: int) -> list[float]:
    async def once() -> float:
        begun = time.perf_counter()
        await model.chat([{"role": "user", "content": prompt}], max_tokens=tokens, temperature=0.0)
        return time.perf_counter() - begun

    return list(await asyncio.gather(*(once() for _ in range(count))))


def measure_llm(model: ChatModel | None, prompt: str, settings: Settings) -> tuple[Point, ...]:
    """One reply of `llm.ideal_tokens` tokens alone, and `llm.max_concurrent` at once.

    () where no endpoint is configured. Raises LLMError where it does not answer.
    """
    if model is None:
        return ()
    tokens, most = settings.llm.ideal_tokens, settings.llm.max_concurrent
    asyncio.run(_chat_together(model, prompt, 1, 1))
    alone = [asyncio.run(_chat_together(model, prompt, tokens, 1))[0] for _ in range(3)]
    together = asyncio.run(_chat_together(model, prompt, tokens, most))
    return (point(alone), point(together, most))
