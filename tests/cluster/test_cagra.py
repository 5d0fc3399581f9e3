"""Building graphs with CAGRA.

A fake GPU accepts the arguments that FAISS 1.15 documents and builds a real graph on the CPU, so
that the written file can be read.
"""

from pathlib import Path
from typing import Any, ClassVar

import faiss
import numpy as np
import pytest

from cluster.index import cagra
from cluster.index.vectors import VectorIndex, empty_index, save
from cluster.index.vectors import build as build_on_cpu
from pipelines.sample.generate_citations import generate_citations
from tests.small_index import write_index

DIMENSIONS, M, EF = 32, 8, 60


class CagraConfig:
    """The fields of faiss.GpuIndexCagraConfig, and no others."""

    __slots__ = (
        "build_algo", "device", "graph_degree", "guarantee_connectivity",
        "intermediate_graph_degree", "ivf_pq_params", "ivf_pq_search_params", "nn_descent_niter",
        "refine_rate", "store_dataset",
    )  # fmt: skip


class Card:
    """Fake faiss.GpuIndexCagra: `copyTo` halves the degree and reads the training vectors."""

    made: ClassVar[list["Card"]] = []

    def __init__(self, resources: Any, dimensions: int, metric: int, config: Any) -> None:
        assert metric == faiss.METRIC_INNER_PRODUCT
        self.dimensions, self.config = dimensions, config
        Card.made.append(self)

    def train(self, vectors: np.ndarray) -> None:
        assert vectors.dtype == np.float32
        assert vectors.flags.c_contiguous
        self.vectors = vectors

    def copyTo(self, index: faiss.IndexHNSWCagra) -> None:  # noqa: N802
        real = faiss.IndexHNSWFlat(
            self.dimensions, self.config.graph_degree // 2, faiss.METRIC_INNER_PRODUCT
        )
        self.ef_construction = index.hnsw.efConstruction
        real.hnsw.efConstruction = index.hnsw.efConstruction
        real.add(np.array(self.vectors))
        index.hnsw, index.ntotal = real.hnsw, real.ntotal


class FullCard(Card):
    def train(self, vectors: np.ndarray) -> None:
        raise MemoryError("std::bad_alloc: out_of_memory: CUDA error")


def stand_in(monkeypatch: pytest.MonkeyPatch, card: type[Card], fewest: int = 100) -> None:
    Card.made.clear()
    monkeypatch.setattr(faiss, "GpuIndexCagra", card, raising=False)
    monkeypatch.setattr(faiss, "GpuIndexCagraConfig", CagraConfig, raising=False)
    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(cagra, "FEWEST_ROWS", fewest)


def some_vectors(rows: int = 2000) -> np.ndarray:
    made = np.random.default_rng(0).standard_normal((rows, DIMENSIONS)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)


def trained(kind: str, sample: np.ndarray) -> Any:
    empty = empty_index(kind, DIMENSIONS, M, EF)
    if not empty.is_trained:
        empty.train(sample)
    return empty


def recall_at_ten(path: Path, vectors: np.ndarray) -> float:
    reader = VectorIndex(path, ef_search=128, exact_below=0)
    found = [reader.search(query, 10)[0] for query in vectors[:100]]
    nearest = np.argsort(-vectors[:100] @ vectors.T, axis=1)[:, :10]
    return float(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, nearest, strict=True)]))


@pytest.mark.parametrize("kind", ["flat", "fp16", "sq8"])
def test_gpu_graph_is_stored_and_searched_like_a_cpu_graph(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, Card)
    vectors = some_vectors()
    built, reason = cagra.build_by_cagra(trained(kind, vectors), vectors, 1)
    assert reason == ""
    on_cpu = build_on_cpu(trained(kind, vectors), [vectors], 1)
    save(built, tmp_path / "card")
    save(on_cpu, tmp_path / "cpu")
    # Readers of segments accept only the index types that the CPU path writes.
    assert type(faiss.read_index(str(tmp_path / "card"))) is type(on_cpu)
    of_card, of_cpu = (VectorIndex(tmp_path / name, 64, 0) for name in ("card", "cpu"))
    rows = np.arange(len(vectors))
    assert np.array_equal(of_card.stored(rows), of_cpu.stored(rows))
    assert recall_at_ten(tmp_path / "card", vectors) > 0.9


@pytest.mark.model
def test_full_gpu_falls_back_to_the_cpu_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    stand_in(monkeypatch, FullCard)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1000, 24_000_000_000))
    vectors = some_vectors()
    built, reason = cagra.build_by_cagra(trained("sq8", vectors), vectors, 1)
    plain = build_on_cpu(trained("sq8", vectors), [vectors], 1)
    assert np.array_equal(faiss.serialize_index(built), faiss.serialize_index(plain))
    needed = cagra.gpu_bytes(len(vectors), DIMENSIONS, M)
    assert reason.startswith(f"CAGRA needs up to {needed:,} bytes of GPU memory, 1,000 of 24,000,")
    assert "out_of_memory" in reason


def test_missing_gpu_is_reported_for_graphs_that_cagra_would_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = some_vectors()
    for fewest, said in ((2001, ""), (2000, "FAISS was built without CAGRA or finds no GPU")):
        monkeypatch.setattr(cagra, "FEWEST_ROWS", fewest)
        empty = trained("flat", vectors)
        built, reason = cagra.build_from_parts(empty, [vectors], 1, tmp_path / "raw")
        assert (built.ntotal, reason) == (2000, said)


def test_gpu_memory_is_that_of_pruning_for_long_rows_and_of_training_for_few_neighbours() -> None:
    assert cagra.gpu_bytes(1_000_000, 768, 32) == 2**32 + 644_000_000
    assert cagra.gpu_bytes(1_000_000, 768, 8) == 2**32 + 307_600_000


def test_cagra_uses_the_degree_of_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = some_vectors()
    stand_in(monkeypatch, Card, fewest=2001)
    assert cagra.build_by_cagra(trained("flat", vectors), vectors, 1)[0].ntotal == 2000
    assert Card.made == []
    stand_in(monkeypatch, Card)
    built, _ = cagra.build_by_cagra(trained("flat", vectors), vectors, 1)
    (card,) = Card.made
    assert card.config.graph_degree == 2 * M == built.hnsw.nb_neighbors(0)
    assert card.config.intermediate_graph_degree > card.config.graph_degree
    assert card.config.store_dataset is False
    assert card.ef_construction == EF == built.hnsw.efConstruction


@pytest.mark.slow
def test_segment_is_built_on_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, Card, fewest=50)
    citations = list(generate_citations(300, seed=1))
    write_index(tmp_path / "cpu", citations)
    assert Card.made == []
    write_index(tmp_path / "card", citations, gpus=1)
    assert len(Card.made) == 2
    assert not list((tmp_path / "card").rglob(".vectors.f32"))


def test_empty_shard_is_built_with_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, Card)
    manifest = write_index(tmp_path, list(generate_citations(1, seed=1)), gpus=1)
    assert min(shard.segments[0].passages for shard in manifest.shards) == 0
