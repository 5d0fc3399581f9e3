"""Compare filtered searches of one segment with unfiltered ones.

    python -m benchmarks.bench_filters [FOLDER] [--citations 100000] [--queries 100]

Writes a segment of generated citations with one passage each to FOLDER or to a temporary folder,
unless FOLDER already holds it. The vectors are random unit vectors near a subspace of 24
dimensions, which HNSW can search. Prints for each filter: recall@10 against an exact search, the
median wall and CPU time in milliseconds of searches by vectors and by BM25, the ratio of CPU time
to that of unfiltered searches, and the CPU time of the first search with the filter. The filter
`topic` passes a tenth of the citations, which lie close together. Runs on one thread.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa

from benchmarks.smallest import parse_arguments
from cluster.arrow_records import citations_to_table
from cluster.index.bm25 import Bm25Query
from cluster.index.filters.filters import NO_FILTERS, Filters
from cluster.index.layout import FILTERS
from cluster.index.manifest import SegmentEntry
from cluster.index.put_segment import read_entry
from cluster.index.read_segment import SegmentReader, open_segment
from cluster.index.vectors import Vectors
from cluster.index.write_segment import SPANS, SegmentPlan, SegmentRows, write_rows
from cluster.records import Citation, MeshHeading, Section
from cluster.settings.settings import load_settings
from pipelines.build.build_shard import train_quantiser

SMALLEST = "--citations 2000 --queries 3"

DIMENSIONS, PLANE, BATCH = 384, 24, 2000
TOP, LIMIT = 10, 100
SHARES = {"half": 0.5, "tenth": 0.1, "hundredth": 0.01, "thousandth": 0.001}
CASES = {
    "all": NO_FILTERS,
    **{name: Filters(publication_types=(name,)) for name in SHARES},
    "topic": Filters(publication_types=("topic",)),
    "year >= 2000": Filters(year_from=2000),
    "not retracted": Filters(retracted=False),
}
WORDS = [f"word{rank}" for rank in range(20_000)]
WEIGHTS = np.cumsum((np.arange(len(WORDS)) + 2.7) ** -1.1)


def unit_vectors(count: int, chance: np.random.Generator) -> Vectors:
    axes = np.random.default_rng(1).standard_normal((PLANE, DIMENSIONS))
    places = chance.standard_normal((count, PLANE)) @ axes
    raw = places + 0.5 * chance.standard_normal((count, DIMENSIONS))
    found: Vectors = (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype(np.float32)
    return found


def words(count: int, chance: np.random.Generator) -> list[str]:
    ranks = np.searchsorted(WEIGHTS, chance.random(count) * WEIGHTS[-1])
    return [WORDS[rank] for rank in ranks]


def make_citation(pmid: int, vector: Vectors, chance: np.random.Generator) -> Citation:
    types = [name for name, share in SHARES.items() if chance.random() < share]
    # A tenth of a normal distribution lies above 1.28 standard deviations.
    if vector[0] > 1.28 / DIMENSIONS**0.5:
        types.append("topic")
    if chance.random() < 0.01:
        types.append("Retracted Publication")
    mesh = {int(number) for number in chance.zipf(1.3, 12) % 30_000}
    return Citation(
        pmid=pmid,
        sections=(Section("", " ".join(words(80, chance))),),
        journal=f"Journal {int(chance.zipf(1.3)) % 20_000}",
        year=int(chance.integers(1975, 2026)),
        languages=("eng",),
        publication_types=("Journal Article", *types),
        mesh=tuple(MeshHeading(f"D{number:06d}", "", False) for number in sorted(mesh)),
    )


def batches(count: int) -> Iterator[SegmentRows]:
    chance = np.random.default_rng(0)
    for begin in range(0, count, BATCH):
        vectors = unit_vectors(min(BATCH, count - begin), chance)
        made = [make_citation(begin + n + 1, v, chance) for n, v in enumerate(vectors)]
        [batch] = citations_to_table(made).combine_chunks().to_batches()
        spans = [[{"section": 1, "begin": 0, "end": len(c.abstract)}] for c in made]
        no_tokens = np.zeros(len(made), np.int64)
        yield SegmentRows(batch, pa.array(spans, SPANS), vectors, no_tokens, b"")


def written(folder: Path, count: int) -> SegmentEntry:
    if (entry := read_entry(folder / "segment")) is not None:
        return entry
    chosen = load_settings().index
    plan = SegmentPlan(
        id="segment",
        quantiser=folder / "quantiser.faiss",
        dimensions=DIMENSIONS,
        bm25_over=("citations",),
        vectors=chosen.vectors,
        hnsw_m=chosen.hnsw_m,
        ef_construction=chosen.ef_construction,
        threads=2,
    )
    train_quantiser(unit_vectors(20_000, np.random.default_rng(2)), plan.quantiser, plan)
    return write_rows(batches(count), folder / "segment", plan)


def reader(folder: Path, entry: SegmentEntry, exact_below: int) -> SegmentReader:
    ef_search = load_settings().index.ef_search
    opened = open_segment(folder / "segment", entry, ef_search=ef_search, exact_below=exact_below)
    return SegmentReader(opened, np.empty(0, np.int64))


class Timer:
    """Context manager that records the wall time and CPU time of each use in milliseconds."""

    def __init__(self) -> None:
        self._spent: list[tuple[float, float]] = []

    def __enter__(self) -> None:
        self._begun = time.perf_counter(), time.thread_time()

    def __exit__(self, *_: object) -> None:
        wall, cpu = self._begun
        self._spent.append((1e3 * (time.perf_counter() - wall), 1e3 * (time.thread_time() - cpu)))

    def p50(self) -> tuple[float, float]:
        wall, cpu = (statistics.median(side) for side in zip(*self._spent, strict=True))
        return wall, cpu

    def against(self, other: Timer) -> str:
        (wall, cpu), (_, base) = self.p50(), other.p50()
        return f"p50 {wall:.2f} ms, CPU {cpu:.2f} ms ({cpu / base:.2f}x)"


def bm25_queries(segment: SegmentReader, count: int) -> list[Bm25Query]:
    chance = np.random.default_rng(4)
    queries = []
    for _ in range(count):
        terms = dict.fromkeys(words(8, chance), 1.0)
        frequencies = segment.frequencies(list(terms), "citations")
        queries.append(Bm25Query(terms, frequencies, len(segment.pmids), 80.0, 0.9, 0.4))
    return queries


def measure(graph: SegmentReader, exact: SegmentReader, queries: int) -> None:
    vectors = unit_vectors(queries, np.random.default_rng(3))
    postings = bm25_queries(graph, queries)
    first, dense, bm25 = ({name: Timer() for name in CASES} for _ in range(3))
    shared: dict[str, list[float]] = {name: [] for name in CASES}
    graph.search_dense(vectors[0], TOP, Filters(year_to=1980))
    for name, filters in CASES.items():
        with first[name]:
            graph.search_dense(vectors[0], TOP, filters)
    for vector, query in zip(vectors, postings, strict=True):
        # Take turns, so that other load on the machine affects all filters alike.
        for name, filters in CASES.items():
            with dense[name]:
                rows, _ = graph.search_dense(vector, LIMIT, filters)
            with bm25[name]:
                graph.search_bm25(query, LIMIT, "citations", filters)
            truth, _ = exact.search_dense(vector, TOP, filters)
            shared[name].append(len(np.intersect1d(rows[:TOP], truth)) / len(truth))
    for name, filters in CASES.items():
        passing = graph._passing.find(filters).citations.rows.count if filters else len(graph.pmids)
        print(
            f"{name:13} {passing / len(graph.pmids):7.2%} pass; vectors: recall@{TOP} "
            f"{statistics.mean(shared[name]):.3f}, {dense[name].against(dense['all'])}; BM25: "
            f"{bm25[name].against(bm25['all'])}; first CPU {first[name].p50()[1]:.1f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--citations", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=100)
    arguments = parse_arguments(parser, SMALLEST)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        entry = written(folder, arguments.citations)
        size = entry.artefacts[FILTERS].bytes / entry.citations
        postings = sum(a.bytes for n, a in entry.artefacts.items() if n.startswith("bm25-"))
        print(
            f"{entry.citations:,} citations; {FILTERS} {size:.1f} bytes a citation, BM25 "
            f"{postings / entry.citations:.1f}"
        )
        faiss.omp_set_num_threads(1)
        measure(reader(folder, entry, 0), reader(folder, entry, 1 << 40), arguments.queries)


if __name__ == "__main__":
    main()
