"""Compare each part of CiteRay with its usual alternative in one run (`make bench-peers`).

    python -m benchmarks.bench_peers [QUESTIONS.json SOURCE...] [--limit 96] [--part encode ...]

Without arguments, uses the questions and citations of the sample corpus; its build is mostly
start-up time, so that ratio says nothing about larger corpora. Runs all parts, or those of --part;
`nearest`, `best_by_words` and `search` need the index that `build` makes. Each part runs in a
process of its own. Prints medians. Ratios carry over to other machines, absolute times do not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.ratios import HEAD, Ratio
from benchmarks.smallest import parse_arguments
from cluster.index.layout import VECTORS, bm25_directory

SMALLEST = "QUESTIONS SOURCES --limit 12 --rounds 1 --passages 16"

ROUNDS = 5
# Number of passages, evenly spaced, for the sentence-transformers loop.
LOOP_PASSAGES = 640


@dataclass(frozen=True)
class Given:
    """Inputs: questions in BioASQ's format, sources, and the folder of their index.

    `passages` limits the number of encoded passages; None uses the default of each part.
    """

    questions: Path
    sources: tuple[str, ...]
    index: Path
    limit: int
    rounds: int
    passages: int | None


def parse(given: Given) -> Iterator[Ratio]:
    from benchmarks.bench_parse import measure
    from pipelines.sample.generate_citations import write_generated

    with tempfile.TemporaryDirectory() as folder:
        (generated,) = write_generated(Path(folder), 2_000)
        found = measure(generated, given.rounds)
    for peer, name in (("pubmed_parser", "pubmed_parser"), ("lxml", "lxml, nothing read")):
        yield Ratio(
            "parse generated records",
            *(found["citeray_per_s"], name, found[f"{peer}_per_s"], "citations/s"),
        )


def encode(given: Given) -> Iterator[Ratio]:
    from benchmarks.bench_encoder import DEFAULT, encoders_of, medians
    from benchmarks.build_index import passages_of
    from cluster.models.adapters import model_folder
    from cluster.models.encoder import Encoder
    from cluster.models.openvino_runtime import PROBE_QUESTIONS
    from cluster.settings.settings import load_settings
    from pipelines.indexing.sources.find_sources import find_sources

    settings = load_settings()
    texts = passages_of(find_sources(given.sources))[:320][: given.passages]
    ours = Encoder.by(settings.encoder, model_folder(settings.encoder))
    plain = next(run for name, run in encoders_of(settings) if name == DEFAULT)
    contenders = {"ours": ours.encode, "plain": plain}
    many = medians({name: partial(run, texts) for name, run in contenders.items()}, given.rounds)
    few = {
        name: lambda run=run: [run([question]) for question in PROBE_QUESTIONS]
        for name, run in contenders.items()
    }
    one = medians(few, given.rounds)
    rates = {name: len(texts) / seconds for name, seconds in many.items()}
    peer = "sentence-transformers, float32"
    yield Ratio("encode passages", rates["ours"], peer, rates["plain"], "passages/s")
    each = {name: 1e3 * seconds / len(PROBE_QUESTIONS) for name, seconds in one.items()}
    yield Ratio("encode a question", each["ours"], peer, each["plain"], "ms")


def build(given: Given) -> Iterator[Ratio]:
    import torch

    from benchmarks import build_index
    from pipelines.indexing.sources.find_sources import find_sources

    texts = build_index.passages_of(find_sources(given.sources))
    sample = texts[:: max(len(texts) // LOOP_PASSAGES, 1)][: given.passages]
    types = (torch.float32, torch.bfloat16)
    before = {dtype: build_index.bare_rate(sample, dtype) for dtype in types}
    seconds = build_index.build(list(given.sources), given.index)
    best = max(before, key=lambda dtype: before[dtype])
    loop = (before[best] + build_index.bare_rate(sample, best)) / 2
    peer = f"a bare loop of sentence-transformers, {str(best).removeprefix('torch.')}"
    rate = len(texts) / seconds
    yield Ratio("build an index, all in", rate, peer, loop, "passages/s")


def nearest(given: Given) -> Iterator[Ratio]:
    import faiss

    from cluster.index.vectors import VectorIndex
    from cluster.models.adapters import model_folder
    from cluster.models.encoder import Encoder
    from cluster.settings.settings import load_settings

    settings, bodies = load_settings(), bodies_of(given)
    vectors = Encoder.by(settings.encoder, model_folder(settings.encoder)).encode(bodies)
    file = segment_of(given) / VECTORS
    faiss.omp_set_num_threads(1)
    ours = VectorIndex(file, settings.index.ef_search, exact_below=0)
    bare = faiss.read_index(str(file))
    wide = faiss.SearchParametersHNSW(efSearch=max(settings.index.ef_search, 100))
    each = a_question(
        lambda: [ours.search(vector, 100) for vector in vectors],
        lambda: [bare.search(vector[None], 100, params=wide) for vector in vectors],
        len(bodies),
        given.rounds,
    )
    yield Ratio("100 nearest of a shard", each[0], "FAISS alone", each[1], "ms")


def best_by_words(given: Given) -> Iterator[Ratio]:
    import tantivy

    from cluster.index.bm25 import Bm25Index, Bm25Query
    from cluster.index.terms.collection import Statistics
    from cluster.text.analysis import ANALYSER
    from serve.search.make_queries import query_weights

    folder = segment_of(given) / bm25_directory("citations")
    index, postings = tantivy.Index.open(str(folder)), Bm25Index(folder)
    searcher, units = index.searcher(), index.searcher().num_docs
    ours, bare = [], []
    for body in bodies_of(given):
        weights = query_weights(body, (), 0.0, ANALYSER)
        counts = {term: searcher.doc_freq("body", term) for term in weights}
        query = Bm25Query(weights, {}, 0, 0.0, 0.9, 0.4)
        ours.append(query.with_statistics(Statistics(units, 100 * units, counts)))
        terms = [
            tantivy.Query.term_query(index.schema, "body", term, index_option="freq")
            for term in weights
        ]
        bare.append(tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms]))
    each = a_question(
        lambda: [postings.search(query, 100, frozenset()) for query in ours],
        lambda: [searcher.search(query, 100, count=False) for query in bare],
        len(ours),
        given.rounds,
    )
    yield Ratio("100 best of a shard by BM25", each[0], "tantivy alone", each[1], "ms")


def segment_of(given: Given) -> Path:
    return next(given.index.rglob(VECTORS)).parent


def a_question(
    ours: Callable[[], object], theirs: Callable[[], object], count: int, rounds: int
) -> tuple[float, float]:
    """Return the median ms per question of both functions, which ask `count` questions each."""
    from benchmarks.bench_encoder import medians

    spent = medians({"ours": ours, "theirs": theirs}, rounds)
    return 1e3 * spent["ours"] / count, 1e3 * spent["theirs"] / count


def late(given: Given) -> Iterator[Ratio]:
    from benchmarks.build_index import passages_of
    from benchmarks.late_interaction import compare
    from cluster.settings.settings import load_settings
    from pipelines.indexing.sources.find_sources import find_sources

    texts = [text for text in passages_of(find_sources(given.sources)) if len(text) > 40]
    yield from compare(
        load_settings(), bodies_of(given)[:32], texts[:2_000][: given.passages], given.rounds
    )


def search(given: Given) -> Iterator[Ratio]:
    from benchmarks.bench_haystack import CALLERS, measure_all

    rows = json.loads(given.questions.read_text())["questions"][: given.limit]
    found = {measured.name: measured for measured in measure_all(rows, given.index)}
    for system, peer in (
        ("hybrid", "Haystack, dense and BM25"),
        ("citeray", "Haystack, dense and BM25, reranked"),
    ):
        ours, theirs = found[f"CiteRay, `{system}` over HTTP"], found[peer]
        named = f"{peer} (MAP@10 {theirs.precision:.3f})"
        what = f"`{system}` over HTTP (MAP@10 {ours.precision:.3f})"
        yield Ratio(f"{what}, alone", ours.milliseconds, named, theirs.milliseconds, "ms")
        yield Ratio(f"{what}, {CALLERS} callers", ours.rate, named, theirs.rate, "questions/s")


def bodies_of(given: Given) -> list[str]:
    rows = json.loads(given.questions.read_text())["questions"]
    return [row["body"] for row in rows[: given.limit]]


# `build` creates the index that `nearest`, `best_by_words` and `search` use.
PARTS: Mapping[str, Callable[[Given], Iterator[Ratio]]] = {
    part.__name__: part for part in (parse, encode, build, nearest, best_by_words, late, search)
}


def ratios_of(part: str, given: Given) -> list[Ratio]:
    return list(PARTS[part](given))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("questions", type=Path, nargs="?")
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--limit", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--passages", type=int, help="encode at most this many passages")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS, help="default: all")
    options = parse_arguments(parser, SMALLEST)
    with tempfile.TemporaryDirectory() as name:
        questions, sources = options.questions, options.sources
        if questions is None:
            from pipelines.sample.write_sample import write_sample

            sample = write_sample(Path(name) / "sample")
            questions, sources = sample.questions, list(map(str, sample.sources))
        index, counts = Path(name) / "index", (options.limit, options.rounds, options.passages)
        given = Given(questions, tuple(sources), index, *counts)
        print(HEAD, flush=True)
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as pool:
            for part in options.part:
                for ratio in pool.submit(ratios_of, part, given).result():
                    print(ratio.row(), flush=True)


if __name__ == "__main__":
    main()
