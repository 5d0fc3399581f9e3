"""Compare HNSW search of an index with exact search and with FAISS alone.

    python -m benchmarks.bench_search INDEX [--queries 200]

INDEX must be built by `bench_scale`. The queries are titles of generated citations that it does not
hold, encoded with the same stand-in encoder. Prints recall@10 of passages against an exact search
at the default settings and at the wider setting that presets use, and the median latency in
milliseconds over all shards in sequence, for CiteRay and for bare FAISS in turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from benchmarks.smallest import parse_arguments
from benchmarks.stand_in import BagOfWords
from cluster.index.layout import VECTORS, segment_directory
from cluster.index.manifest import Manifest, read_manifest
from cluster.index.read_shard import limit_of_shard
from cluster.index.vectors import VectorIndex, Vectors
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from pipelines.sample.generate_citations import generate_citations

SMALLEST = "GENERATED --queries 5"

UNSEEN_PMID = 50_000_001
TOP = 10


def vector_files(index: Path, manifest: Manifest) -> list[Path]:
    return [
        index / segment_directory(number, segment.id) / VECTORS
        for number, shard in enumerate(manifest.shards)
        for segment in shard.segments
    ]


def best_of(parts: Sequence[tuple[npt.NDArray[np.int64], Vectors]]) -> set[tuple[int, int]]:
    """Return (segment, row) of the TOP best over all parts."""
    flat = [
        (-float(score), number, int(row))
        for number, (rows, scores) in enumerate(parts)
        for row, score in zip(rows, scores, strict=True)
    ]
    return {(number, row) for _, number, row in sorted(flat)[:TOP]}


def bare_search(indexes: Sequence[Any], query: Vectors, limit: int, ef: int) -> list[Any]:
    parameters = faiss.SearchParametersHNSW(efSearch=ef)
    return [index.search(query[None, :], limit, params=parameters) for index in indexes]


def recall(found: Sequence[set[Any]], exact: Sequence[set[Any]]) -> float:
    return statistics.mean(len(f & e) / len(e) for f, e in zip(found, exact, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    arguments = parse_arguments(parser, SMALLEST)
    manifest, chosen = read_manifest(arguments.index), load_settings().index
    files = vector_files(arguments.index, manifest)
    citations = generate_citations(arguments.queries, first_pmid=UNSEEN_PMID)
    queries = BagOfWords().encode([citation.title for citation in citations])
    faiss.omp_set_num_threads(1)
    ours = [VectorIndex(path, chosen.ef_search, exact_below=0) for path in files]
    exact = [VectorIndex(path, chosen.ef_search, exact_below=1 << 40) for path in files]
    bare = [faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC) for path in files]
    print(
        f"{manifest.citations:,} citations, {manifest.passages:,} passages in {len(files)} "
        f"segments; {manifest.vectors}, M {chosen.hnsw_m}, efSearch {chosen.ef_search}"
    )
    truth = [best_of([index.search(q, TOP) for index in exact]) for q in queries]
    dense = limit_of_shard(load_system("citeray").retrieve.dense, len(manifest.shards))
    asked = f"{dense} citations a shard, as citeray"
    for name, limit in (("ten passages", TOP), (asked, 3 * dense)):
        ef = max(chosen.ef_search, limit)
        found, own_s, bare_s = [], [], []
        for query in queries:
            begun = time.perf_counter()
            parts = [index.search(query, limit) for index in ours]
            middle = time.perf_counter()
            bare_search(bare, query, limit, ef)
            bare_s.append(time.perf_counter() - middle)
            own_s.append(middle - begun)
            found.append(best_of(parts))
        own_ms, bare_ms = (1e3 * statistics.median(side) for side in (own_s, bare_s))
        print(
            f"{name}: recall@{TOP} {recall(found, truth):.3f}; median {own_ms:.1f} ms, bare FAISS "
            f"{bare_ms:.1f} ms, ratio {own_ms / bare_ms:.2f} (one thread, all segments in turn)"
        )


if __name__ == "__main__":
    main()
