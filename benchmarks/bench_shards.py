"""Check that four shards give the same results as one, by exact search and by HNSW.

    python -m benchmarks.bench_shards CORPUS QUESTIONS.json [--limit N]

Embeds the corpus once and writes it as one shard and as four. Prints the share of questions with
the same ten citations, in the same order and as a set, for the preset `hybrid`.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.smallest import parse_arguments
from cluster.answers import Question
from cluster.index.manifest import read_manifest
from cluster.index.read_shard import ShardReader
from cluster.models.adapters import model_folder
from cluster.models.encoder import Encoder
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from pipelines.build.find_sources import find_sources
from serve.answer_question import QuestionAnswerer
from serve.formats.bioasq import read_questions
from serve.request import Request
from tests.serve.small_graph import small_stages
from tests.small_index import make_index

SMALLEST = "CORPUS QUESTIONS --limit 10"


class Remembered:
    """Encoder with a cache."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, np.ndarray] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        new = list(dict.fromkeys(t for t in texts if t not in self._known))
        self._known.update(zip(new, self._encoder.encode(new), strict=True))
        if not texts:
            return self._encoder.encode([])
        return np.stack([self._known[t] for t in texts])


def tops(index: Path, encode: Remembered, bodies: list[str], exact: int) -> list[list[int]]:
    found = read_manifest(index)
    readers = [
        ShardReader(index, n, s, ef_search=64, exact_below=exact)
        for n, s in enumerate(found.shards)
    ]
    stages = small_stages(found, readers, (), encode)
    answerer = QuestionAnswerer(stages, load_settings().serve)
    system = load_system("hybrid")

    async def ask() -> list[list[int]]:
        results = [await answerer.search(Request(Question("", b), system, 10)) for b in bodies]
        return [[c.pmid for c in r.citations] for r in results]

    return asyncio.run(ask())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("questions", type=Path)
    parser.add_argument("--limit", type=int, help="number of citations read (default all)")
    given = parse_arguments(parser, SMALLEST)
    settings = load_settings()
    encoder = Encoder(model_folder(settings.encoder), max_tokens=256, threads=2)
    encode = Remembered(encoder)
    records = (r for path in find_sources([given.corpus]) for r in read_records(path))
    citations = list(islice((r for r in records if isinstance(r, Citation)), given.limit))
    bodies = [q.body for q in read_questions(given.questions)]
    with tempfile.TemporaryDirectory() as folder:
        for vectors in ("flat", "sq8"):
            for shards in (1, 4):
                make_index(
                    Path(folder) / f"{vectors}-{shards}",
                    citations,
                    shards=shards,
                    vectors=vectors,
                    hnsw_m=settings.index.hnsw_m,
                    encode=encode,
                )
            for name, exact in (("exact", 10**9), ("graph", 0)):
                one, four = (
                    tops(Path(folder) / f"{vectors}-{n}", encode, bodies, exact) for n in (1, 4)
                )
                same = sum(a == b for a, b in zip(one, four, strict=True))
                sets = sum(set(a) == set(b) for a, b in zip(one, four, strict=True))
                total = len(bodies)
                print(
                    f"{vectors} {name}: same order {same / total:.4f}, same set {sets / total:.4f}"
                )


if __name__ == "__main__":
    main()
