"""Compare CiteRay with a Haystack pipeline over the same models, passages and questions.

    python -m benchmarks.bench_haystack QUESTIONS.json --index INDEX [--limit 96]

The Haystack pipeline runs in this process: it embeds with CiteRay's encoder, searches a flat FAISS
index and its own BM25 over CiteRay's passages, merges the results with the weights of the preset
`citeray`, and reranks 20 passages with CiteRay's reranker. CiteRay is called over HTTP. Prints for
each system the median latency of a single question in milliseconds, questions per second with 16
concurrent callers, and MAP@10.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import faiss
import httpx
import numpy as np
from haystack import Document, Pipeline, component
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack_integrations.components.embedders.sentence_transformers import (
    SentenceTransformersTextEmbedder,
)
from haystack_integrations.components.retrievers.faiss import FAISSEmbeddingRetriever
from haystack_integrations.document_stores.faiss import FAISSDocumentStore

from benchmarks.questions import Row, asked, average_precision, question_parser
from benchmarks.served_graph import served_graph
from benchmarks.smallest import parse_arguments
from cluster.index.layout import VECTORS
from cluster.index.read_records import SegmentRecords
from cluster.models.adapters import model_folder
from cluster.models.hardware import choose_device, choose_dtype
from cluster.settings.presets import load_system
from cluster.settings.settings import Settings, load_settings
from serve.graph.load_stages import load_encoder, open_manifest
from serve.search.rerank_passages import LateInteractionReranker, TokenEncoder

SMALLEST = "QUESTIONS --index INDEX --limit 12"

CALLERS = 16
WARM = 6
# (name, whether BM25 is used, whether the reranker is used)
PIPELINES = (
    ("dense and BM25", True, False),
    ("dense and BM25, reranked", True, True),
    ("dense, reranked", False, True),
)
TOP = 10
SYSTEMS = ("hybrid", "citeray")
# Passages to rerank: more would be too slow for a model that encodes each passage again.
DEPTH = 20
Ask = Callable[[str], Awaitable[list[int]]]


@component
class Rerank:
    """CiteRay's late interaction reranker as a component, because Haystack has none."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self._reranker = LateInteractionReranker(encoder, 16)

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, list[Document]]:
        scores = self._reranker.score(query, [document.content or "" for document in documents])
        order = np.argsort(-scores, kind="stable")
        return {"documents": [documents[position] for position in order]}


def documents_of(index: Path) -> list[Document]:
    """Read every passage with its vector from the files of the index."""
    found = []
    for segment in sorted(path.parent for path in index.rglob(VECTORS)):
        records = SegmentRecords(segment)
        graph = faiss.read_index(str(segment / VECTORS))
        storage = faiss.downcast_index(getattr(graph, "storage", graph))
        vectors = storage.reconstruct_n(0, storage.ntotal)
        texts = records.passage_texts(np.arange(storage.ntotal))
        pmids = records.pmids[records.passage_citation]
        found += [
            Document(f"{pmid}-{row}", text, meta={"pmid": int(pmid)}, embedding=vector.tolist())
            for row, (pmid, text, vector) in enumerate(zip(pmids, texts, vectors, strict=True))
        ]
    return found


def haystack(settings: Settings, documents: Sequence[Document], bm25: bool, reranked: bool) -> Ask:
    preset = load_system("citeray")
    encoder = load_encoder(settings, open_manifest(settings))
    store = FAISSDocumentStore(embedding_dim=encoder.dimensions, index_string="Flat")
    store.write_documents(list(documents))
    pipeline = Pipeline()
    embedder = SentenceTransformersTextEmbedder(
        model=str(model_folder(settings.encoder)),
        progress_bar=False,
        normalize_embeddings=True,
        local_files_only=True,
        model_kwargs={"dtype": choose_dtype("auto", choose_device(settings.encoder.device))},
    )
    weights = [preset.fuse.dense, preset.fuse.bm25] if bm25 else [1.0]
    pipeline.add_component("embed", embedder)
    pipeline.add_component("dense", FAISSEmbeddingRetriever(document_store=store, top_k=100))
    pipeline.add_component("join", DocumentJoiner("merge", weights, top_k=DEPTH))
    if reranked:
        pipeline.add_component("rerank", Rerank(encoder))
        pipeline.connect("join.documents", "rerank.documents")
    pipeline.connect("embed.embedding", "dense.query_embedding")
    pipeline.connect("dense.documents", "join.documents")
    if bm25:
        words = InMemoryDocumentStore(shared=False)
        words.write_documents([Document(d.id, d.content, meta=d.meta) for d in documents])
        pipeline.add_component("bm25", InMemoryBM25Retriever(words, top_k=100, scale_score=True))
        pipeline.connect("bm25.documents", "join.documents")
    pipeline.warm_up()
    last = "rerank" if reranked else "join"

    async def ask(body: str) -> list[int]:
        given = {"embed": {"text": body}}
        given |= {"rerank": {"query": body}} if reranked else {}
        given |= {"bm25": {"query": body}} if bm25 else {}
        found = await pipeline.run_async(given)
        return list(dict.fromkeys(d.meta["pmid"] for d in found[last]["documents"]))[:TOP]

    return ask


def ours(http: httpx.AsyncClient, system: str) -> Ask:
    async def ask(body: str) -> list[int]:
        reply = await http.post("/v1/search", json={"question": body, "system": system})
        return [found["pmid"] for found in reply.raise_for_status().json()["citations"]]

    return ask


@dataclass(frozen=True)
class Measured:
    """Median latency of a single question in ms, questions per second of CALLERS, and MAP@10."""

    name: str
    milliseconds: float
    rate: float
    precision: float

    def row(self) -> str:
        return f"| {self.name} | {self.milliseconds:.0f} | {self.rate:.2f} | {self.precision:.3f} |"


async def measure(name: str, ask: Ask, questions: Sequence[Row]) -> Measured:
    """Measure a pipeline. Each question is asked only once, so that caches do not help."""
    warm, alone = questions[:WARM], questions[WARM : WARM + len(questions) // 3]
    together = questions[WARM + len(alone) :]
    for question in warm:
        await ask(question["body"])
    took, precisions = [], []
    for question in alone:
        begun = time.perf_counter()
        found = await ask(question["body"])
        took.append((time.perf_counter() - begun) * 1000)
        precisions.append(average_precision(question, found))
    turns = asyncio.Semaphore(CALLERS)

    async def turn(question: Row) -> float:
        async with turns:
            return average_precision(question, await ask(question["body"]))

    begun = time.perf_counter()
    precisions += await asyncio.gather(*map(turn, together))
    rate = len(together) / (time.perf_counter() - begun)
    return Measured(name, statistics.median(took), rate, statistics.mean(precisions))


async def measure_ours(url: str, questions: Sequence[Row]) -> list[Measured]:
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
        return [
            await measure(f"CiteRay, `{system}` over HTTP", ours(http, system), questions)
            for system in SYSTEMS
        ]


def measure_all(questions: Sequence[Row], index: Path) -> Iterator[Measured]:
    """Measure CiteRay's SYSTEMS over HTTP, then Haystack's PIPELINES in this process."""
    overrides = [f"index.path={index.resolve()}", "llm.kind=none"]
    with served_graph([*overrides, "serve.http.at_once=64", "serve.http.wait_s=200"]) as graph:
        yield from asyncio.run(measure_ours(graph.url, questions))
    settings, documents = load_settings(overrides=overrides), documents_of(index)
    for name, *parts in PIPELINES:
        pipeline = haystack(settings, documents, *parts)
        yield asyncio.run(measure(f"Haystack, {name}", pipeline, questions))


def main() -> None:
    given = parse_arguments(question_parser(__doc__, limit=96), SMALLEST)
    questions = asked(given)
    print(f"{len(questions)} questions\n")
    print(f"| pipeline | one at a time, median ms | {CALLERS} at once, a second | MAP@10 |")
    print("| --- | --- | --- | --- |")
    for measured in measure_all(questions, given.index):
        print(measured.row(), flush=True)


if __name__ == "__main__":
    main()
