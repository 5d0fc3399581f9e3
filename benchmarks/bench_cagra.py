"""Compare HNSW graphs that CAGRA builds on a GPU with those that FAISS builds on the CPU.

    python -m benchmarks.bench_cagra [--config cluster.yaml] [--set key=value]
        [--vectors 1000000] [--dimensions 768]

Prints the seconds to build each graph and its recall@10. CAGRA is left out if there is no GPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.smallest import parse_arguments
from cluster.index import cagra
from cluster.index.vectors import Vectors, build, empty_index
from cluster.settings.settings import load_settings
from cluster.settings.stages.index import IndexSettings

SMALLEST = "--config laptop.yaml --vectors 1000 --dimensions 32"
QUERIES, TOP = 200, 10


def clustered(rows: int, dimensions: int) -> Vectors:
    """Return unit vectors around common centres, because uniform ones have no near neighbours."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((max(rows // 100, 1), dimensions), np.float32)
    made = centres[random.integers(0, len(centres), rows)]
    made += 0.7 * random.standard_normal((rows, dimensions), np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def recall(index: Any, vectors: Vectors, queries: Vectors, ef_search: int) -> float:
    index.hnsw.efSearch = ef_search
    found = index.search(queries, TOP)[1]
    exact = np.argpartition(-queries @ vectors.T, TOP, axis=1)[:, :TOP]
    return float(np.mean([len(set(f) & set(e)) / TOP for f, e in zip(found, exact, strict=True)]))


def graph_lines(chosen: IndexSettings, rows: int, dimensions: int) -> list[str]:
    everything = clustered(rows + QUERIES, dimensions)
    vectors, queries = everything[:rows], everything[rows:]

    def made(name: str, by: Callable[[Any], Any]) -> str:
        empty = empty_index(chosen.vectors, dimensions, chosen.hnsw_m, chosen.ef_construction)
        if not empty.is_trained:
            empty.train(vectors)
        begun = time.perf_counter()
        by(empty)
        took = time.perf_counter() - begun
        return (
            f"HNSW of {rows:,} vectors of {dimensions} ({chosen.vectors}, M {chosen.hnsw_m}) by "
            f"{name}: {took:.1f} s, recall@{TOP} "
            f"{recall(empty, vectors, queries, chosen.ef_search):.3f}"
        )

    threads = chosen.build_threads
    lines = [made(f"{threads} threads of the CPU", lambda e: build(e, [vectors], threads))]
    if not cagra.on_gpu() or rows < cagra.FEWEST_ROWS:
        return [*lines, "CAGRA: not run, as FAISS has none here, sees no GPU, or has few vectors"]
    return [*lines, made("CAGRA", lambda e: cagra.build_by_cagra(e, vectors, threads))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="cluster.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, default=768)
    given = parse_arguments(parser, SMALLEST)
    settings = load_settings(given.config, given.set)
    print(*graph_lines(settings.index, given.vectors, given.dimensions), sep="\n")


if __name__ == "__main__":
    main()
