"""Compare writing postings and HNSW of a segment with tantivy and FAISS alone.

    python -m benchmarks.bench_write [CITATIONS]

One thread each. Prints citations (or vectors) per second of CPU time and of wall time, medians of
three rounds in turns. CPU time includes the threads that tantivy starts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa
import tantivy

from benchmarks.smallest import parse_arguments
from benchmarks.stand_in import BagOfWords
from cluster.arrow_records import CITATION_SCHEMA, titles_and_abstracts
from cluster.index import vectors
from cluster.index.bm25 import WRITER_HEAP_BYTES
from cluster.index.filters.write_filters import FilterEncoder, posted
from cluster.index.write_segment import PostingsWriter, SegmentRows
from cluster.records import search_text
from cluster.settings.settings import load_settings
from pipelines.build.embed_passages import split_citations
from pipelines.build.split_passages import make_splitter
from pipelines.sample.generate_citations import generate_citations

SMALLEST = "200"

ROUNDS = 3
BATCH = 2000


def rows_of(count: int) -> list[SegmentRows]:
    splitter, encoder = make_splitter("characters", 512, 64), BagOfWords()
    citations = list(generate_citations(count))
    found = []
    for begin in range(0, count, BATCH):
        table = split_citations(citations[begin : begin + BATCH], splitter).combine_chunks()
        (batch,) = table.to_batches()
        texts = [t for unit in passages_of(batch) for t in unit]
        columns = batch.select(CITATION_SCHEMA.names)
        vectors, no_tokens = encoder.encode(texts), np.zeros(len(texts), np.int64)
        found.append(SegmentRows(columns, batch.column("spans"), vectors, no_tokens, b""))
    return found


def passages_of(batch: pa.RecordBatch) -> list[list[str]]:
    spans = batch.column("spans").to_pylist()
    pairs = zip(titles_and_abstracts(batch), spans, strict=True)
    return [[unit[s["section"]][s["begin"] : s["end"]] for s in of_unit] for unit, of_unit in pairs]


def texts_of(rows: list[SegmentRows], over: str) -> list[str]:
    if over == "citations":
        return [search_text(*t) for r in rows for t in titles_and_abstracts(r.citations)]
    batches = [r.citations.append_column("spans", r.spans) for r in rows]
    return [text for batch in batches for unit in passages_of(batch) for text in unit]


def our_postings(rows: list[SegmentRows], over: str, directory: Path) -> None:
    encoder = FilterEncoder()
    with PostingsWriter(directory, [over]) as writer:
        for batch in rows:
            writer.add(batch, posted(encoder.encode(batch.citations)))


def bare_tantivy(texts: list[str], directory: Path) -> None:
    """Write an index as in tantivy's documentation, with the filters and options of CiteRay."""
    schema = tantivy.SchemaBuilder()
    schema.add_integer_field("row", fast=True)
    schema.add_text_field("body", tokenizer_name="english", index_option="freq")
    index = tantivy.Index(schema.build(), path=str(directory))
    analyser = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for each in (
        tantivy.Filter.remove_long(64),
        tantivy.Filter.lowercase(),
        tantivy.Filter.stopword("english"),
        tantivy.Filter.stemmer("english"),
    ):
        analyser = analyser.filter(each)
    index.register_tokenizer("english", analyser.build())
    writer = index.writer(heap_size=WRITER_HEAP_BYTES, num_threads=1)
    for row, text in enumerate(texts):
        writer.add_document(tantivy.Document(row=row, body=text))
    writer.commit()
    writer.wait_merging_threads()


def cost(work: Callable[[Path], object]) -> tuple[float, float]:
    """Return (CPU seconds of all threads, wall seconds)."""
    with tempfile.TemporaryDirectory() as folder:
        before, begun = os.times(), time.perf_counter()
        work(Path(folder))
        after = os.times()
        cpu = after.user + after.system - before.user - before.system
        return cpu, time.perf_counter() - begun


def compare(name: str, units: int, ours: Callable[[Path], object], bare: Callable[[Path], object],
) -> None:  # fmt: skip
    pairs = [(cost(ours), cost(bare)) for _ in range(ROUNDS)]
    own, other = (np.asarray(side) for side in zip(*pairs, strict=True))
    rates = [units / np.median(side, axis=0) for side in (own, other)]
    ratios = [statistics.median(other[:, at] / own[:, at]) for at in (0, 1)]
    print(
        f"{name}: ours {rates[0][0]:,.0f}/s of CPU, {rates[0][1]:,.0f}/s; "
        f"bare {rates[1][0]:,.0f}/s of CPU, {rates[1][1]:,.0f}/s; "
        f"ratio {ratios[0]:.2f} in CPU time, {ratios[1]:.2f} in wall time",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("citations", type=int, nargs="?", default=10_000)
    rows = rows_of(parse_arguments(parser, SMALLEST).citations)
    for over in ("citations", "passages"):
        texts = texts_of(rows, over)
        compare(
            f"postings over {over}",
            len(texts),
            lambda folder, over=over: our_postings(rows, over, folder),  # type: ignore[misc]
            lambda folder, texts=texts: bare_tantivy(texts, folder),  # type: ignore[misc]
        )
    chosen = load_settings().index
    together = np.concatenate([r.vectors for r in rows])
    shape = (chosen.vectors, together.shape[1], chosen.hnsw_m, chosen.ef_construction)
    empty = vectors.empty_index(*shape)
    empty.train(together)
    faiss.omp_set_num_threads(1)
    compare(
        f"HNSW ({chosen.vectors}, M {chosen.hnsw_m}, efConstruction {chosen.ef_construction})",
        len(together),
        lambda _: vectors.build(faiss.clone_index(empty), (r.vectors for r in rows), 1),
        lambda _: faiss.clone_index(empty).add(together),
    )


if __name__ == "__main__":
    main()
