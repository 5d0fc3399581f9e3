"""Measure the time of each stage of a question."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from cluster.errors import without_credentials
from cluster.index.bm25 import Bm25Query
from cluster.index.manifest import SegmentEntry, ShardEntry
from cluster.index.read_shard import ShardQuery, ShardReader, limit_of_shard
from cluster.index.vectors import Vectors
from cluster.records import Citation
from cluster.settings.presets import load_system
from cluster.settings.settings import Settings
from cluster.settings.system_settings import SystemSettings
from cluster.storage.locations import Location
from cluster.text.analysis import ANALYSER
from cluster.text.vocabulary import Vocabulary
from pipelines.sample.generate_citations import generate_citations
from planning.measure.coefficients import Point, Serving, ShardSearch
from planning.measure.fit import Growth, Line
from planning.measure.watch_processes import in_fresh_process, usable_cpus
from serve.graph.load_stages import (
    load_late_interaction,
    load_reranker,
    make_recogniser,
)
from serve.llm.model_roles import find_model
from serve.search.make_queries import query_weights

if TYPE_CHECKING:
    from cluster.models.encoder import Encoder
    from serve.llm.language_model import ChatModel

Tell = Callable[[str], None]
KINDS = ("statistics", "dense", "bm25", "search", "fetch")
FETCHED = 20
QUESTION_SEED = 1
# Numbers of shards to measure with. With many shards, each returns fewer hits; other numbers are
# interpolated.
FEW_SHARDS, MANY_SHARDS = 1, 64


def point(spent: Sequence[float], concurrent: int = 1) -> Point:
    """Return the median and 95th percentile (nearest rank) of `spent` seconds."""
    ordered = sorted(spent)
    last = ordered[ceil(0.95 * len(ordered)) - 1]
    return Point(concurrent=concurrent, median_seconds=median(ordered), p95_seconds=last)


def timed(work: Callable[[], object], threads: int = 1) -> float:
    """Return the seconds that `work` takes on a machine with `threads` free cores.

    On a shared machine, wall-clock time includes waiting, so the busy core time per thread counts
    if it is less. With 0 threads, only the wall-clock time counts.
    """
    begun, busy = time.perf_counter(), time.process_time()
    work()
    spent, busy = time.perf_counter() - begun, time.process_time() - busy
    return min(spent, busy / threads) if threads else spent


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions with their vectors, as one of `shards` shards receives them."""

    questions: tuple[str, ...]
    vectors: Vectors
    system: SystemSettings
    shards: int

    @property
    def limits(self) -> tuple[int, int]:
        """Number of citations that a shard returns from the dense branch and from BM25."""
        retrieve = self.system.retrieve
        dense, bm25 = (limit_of_shard(n, self.shards) for n in (retrieve.dense, retrieve.bm25))
        return dense, bm25

    @classmethod
    def of(cls, encoder: Encoder, settings: Settings, count: int, shards: int) -> Asked:
        """Use the titles of generated citations as questions."""
        questions = tuple(c.title for c in generate_citations(count, QUESTION_SEED))
        vectors = np.stack([v.vector for v in encoder.encode_queries(list(questions))])
        return cls(questions, vectors, load_system(settings.serve.system), shards)


def search_spent(
    reader: ShardReader, entry: SegmentEntry, asked: Asked, settings: Settings
) -> dict[str, list[float]]:
    """Return the seconds of each kind of call, for each question, on one open shard."""
    over = asked.system.retrieve.bm25_over
    units = entry.citations if over == "citations" else entry.passages
    mean = entry.terms.get(over, 0) / max(units, 1)
    spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for question, vector in zip(asked.questions, asked.vectors, strict=True):
        weights = query_weights(question, (), 0.0, ANALYSER)
        terms = list(weights)
        counts = reader.frequencies(terms, over)
        spent["statistics"].append(timed(partial(reader.frequencies, terms, over)))
        k1, b = settings.index.bm25_k1, settings.index.bm25_b
        bm25 = Bm25Query(weights, counts, units, mean, k1, b)
        limits = (*asked.limits, over)
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


def _search(
    index: Location, entry: SegmentEntry, asked: Asked, settings: Settings
) -> dict[str, list[float]]:
    shard = ShardEntry(segments=(entry,))
    # Search the small sample by its HNSW graph, because large shards are searched in this way.
    reader = ShardReader(index, 0, shard, ef_search=settings.index.ef_search, exact_below=0)
    search_spent(reader, entry, asked, settings)
    return search_spent(reader, entry, asked, settings)


@dataclass(frozen=True, slots=True)
class Searched:
    """One shard's size, the seconds of each call, and the peak memory of its reader."""

    citations: int
    passages: int
    spent: dict[str, list[float]]
    peak_bytes: int

    def median(self, kind: str) -> float:
        """Return the median seconds of one kind of call, a key of `spent`."""
        return median(self.spent[kind])

    @property
    def spread(self) -> float:
        """Ratio of the 95th percentile of a search to its median, at least 1."""
        ordered = sorted(self.spent["search"])
        return max(ordered[int(0.95 * (len(ordered) - 1))] / self.median("search"), 1.0)


def measure_searching(
    index: Location, entry: SegmentEntry, asked: Asked, settings: Settings
) -> Searched:
    """Search one shard in a new process, after a first round that warms the mapped files."""
    cost = in_fresh_process(_search, index, entry, asked, settings)
    return Searched(entry.citations, entry.passages, cost.result, cost.peak_bytes)


def measure_batches(
    work: Callable[[Sequence[str]], object], questions: Sequence[str], batch: int, *, threads: int
) -> tuple[Point, ...]:
    """Measure `work` on one question at a time, and on a full batch of the stage."""
    work(questions[:1])
    points = [point([timed(partial(work, [q]), threads) for q in questions])]
    if batch > 1:
        together = [questions[n % len(questions)] for n in range(batch)]
        points.append(point([timed(partial(work, together), threads) for _ in range(2)], batch))
    return tuple(points)


def measure_expanding(settings: Settings, asked: Asked, vocabulary: Path) -> tuple[Point, ...]:
    """Measure query expansion; return () if the system has none."""
    if not asked.system.expand:
        return ()
    recogniser = make_recogniser(settings, Vocabulary.open(vocabulary))
    return measure_batches(lambda q: recogniser.entities(q[0]), asked.questions, 1, threads=1)


def measure_reranking(
    settings: Settings, encoder: Encoder, asked: Asked, citations: Sequence[Citation], threads: int
) -> tuple[Point, ...]:
    """Measure reranking; return () if the system has none."""
    depth = asked.system.rerank.depth
    if not depth:
        return ()
    chosen = settings.reranker
    reranker = (
        load_reranker(settings) if chosen.is_stage else load_late_interaction(settings, encoder)
    )
    length = settings.split.size if settings.split.method != "sections" else 1000
    among = [c for c in citations if c.abstract] or citations
    # Texts do not repeat, because LateInteractionReranker caches recent ones.
    texts = cycle(f"{c.title} {c.abstract[:length]}" for c in among)

    def score(questions: Sequence[str]) -> None:
        reranker.score_pairs([(q, next(texts)) for q in questions for _ in range(depth)])

    return measure_batches(
        score, asked.questions[:12], settings.serve.reranker.batch, threads=threads
    )


async def _chat_together(model: ChatModel, prompt: str, tokens: int, count: int) -> list[float]:
    async def once() -> float:
        begun = time.perf_counter()
        await model.chat([{"role": "user", "content": prompt}], max_tokens=tokens, temperature=0.0)
        return time.perf_counter() - begun

    return list(await asyncio.gather(*(once() for _ in range(count))))


def measure_llm(settings: Settings, evidence: str, tell: Tell) -> tuple[Point, ...]:
    """Measure single replies of `llm.ideal_tokens` tokens, and `llm.max_concurrent` at once.

    Returns () if no endpoint is configured. Raises LLMError if it does not answer.
    """
    model = find_model(settings, "", settings.llm)
    if model is None:
        return ()
    tell(f"asking the language model at {without_credentials(settings.llm.url)}")
    prompt = evidence[: settings.llm.evidence_characters]
    tokens, most = settings.llm.ideal_tokens, settings.llm.max_concurrent
    asyncio.run(_chat_together(model, prompt, 1, 1))
    alone = [asyncio.run(_chat_together(model, prompt, tokens, 1))[0] for _ in range(3)]
    together = asyncio.run(_chat_together(model, prompt, tokens, most))
    return (point(alone), point(together, most))


def measure_serving(
    settings: Settings,
    encoder: Encoder,
    tell: Tell,
    questions: int,
    shards: Sequence[tuple[Location, SegmentEntry]],
    vocabulary: Path,
    citations: Sequence[Citation],
) -> tuple[Serving, Line]:
    """Measure each stage of a question, and the memory of a shard's replica by its citations.

    `shards` are a small and a large shard, each an index with one segment.
    """
    asked = Asked.of(encoder, settings, questions, FEW_SHARDS)
    # With 0 threads, wall-clock time counts: core time does not include the work of a GPU.
    threads = min(settings.encoder.threads, usable_cpus()) if encoder.device == "cpu" else 0
    tell(f"searching both shards with {questions} questions")
    few, many = (
        [measure_searching(*shard, replace(asked, shards=among), settings) for shard in shards]
        for among in (FEW_SHARDS, MANY_SHARDS)
    )
    tell("expanding, encoding and reranking questions")
    expand = measure_expanding(settings, asked, vocabulary)
    batch = settings.serve.encoder.batch
    encode = measure_batches(encoder.encode_queries, asked.questions, batch, threads=threads)
    rerank = measure_reranking(settings, encoder, asked, citations, threads)
    llm = measure_llm(settings, " ".join(c.abstract for c in citations[:20]), tell)
    found = Serving(
        statistics_seconds=few[-1].median("statistics"),
        fetch_seconds=few[-1].median("fetch"),
        shard_p95_over_median=few[-1].spread,
        hits=max(asked.system.retrieve.dense, asked.system.retrieve.bm25),
        searches=(_shard_search(FEW_SHARDS, few), _shard_search(MANY_SHARDS, many)),
        expand=expand,
        encode=encode,
        rerank_pairs=asked.system.rerank.depth,
        rerank=rerank,
        llm=llm,
    )
    return found, Line.of([(s.citations, s.peak_bytes) for s in few])


def _shard_search(shards: int, searched: Sequence[Searched]) -> ShardSearch:
    large = searched[-1]
    join = large.median("search") - large.median("dense") - large.median("bm25")
    return ShardSearch(
        shards=shards,
        dense_seconds=Growth.of([(s.passages, s.median("dense")) for s in searched]),
        bm25_seconds=Line.of([(s.citations, s.median("bm25")) for s in searched]),
        join_seconds=max(join, 0.0),
    )
