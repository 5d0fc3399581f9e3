"""Coefficients in round numbers, for calculations by hand."""

from __future__ import annotations

from cluster.settings.settings import load_settings
from planning.measure.coefficients import Coefficients, GpuCoefficients, MeasuredWith, ShardSearch
from planning.measure.fit import Growth, Line

GPU = GpuCoefficients(
    kind="gpu-coefficients",
    device="NVIDIA H200",
    encoder_documents_per_s={1: 50.0, 1024: 1000.0},
    encoder_documents_per_s_with_tokens={1: 40.0, 1024: 500.0},
    cross_encoder_pairs_per_s=2000.0,
    mean_tokens_per_document=50.0,
    graph_vectors_per_s=1e5,
)


def coefficients(**serving: object) -> Coefficients:
    """Two passages per citation, 100 tokens per passage, 10 ms per stage; `serving` overrides."""
    return Coefficients.model_validate(
        {
            "format": 5,
            "made": "2026-01-01T00:00:00+00:00",
            "machine": {"words": "4 cores", "cpus": 4, "device": "cpu", "load": 0.0},
            "measured_with": MeasuredWith.of(load_settings()),
            "corpus": {
                "words": "generated",
                "sample_citations": 1000,
                "source_bytes_per_citation": 500,
                "passages_per_citation": 2,
                "tokens_per_passage": 100,
                "dimensions": 384,
                "term_rows": {"factor": 10, "exponent": 0.5},
            },
            "artefacts": {
                "staging_bytes_per_citation": 3000,
                "record_bytes_per_citation": 1500,
                "bm25_bytes_per_citation": 500,
                "term_count_bytes_per_row": 80,
                "vocabulary_bytes": {"base": 1000, "slope": 100},
            },
            "building": BUILDING,
            "memory": {
                "driver_bytes": 5e8,
                "read_worker_bytes": 2e8,
                "encode_worker_bytes": 1e9,
                "shard_task_bytes": {"base": 4e8, "slope": 1100},
                "vocabulary_task_bytes": {"base": 5e8, "slope": 2000},
                "shard_replica_bytes": {"base": 1e8, "slope": 20},
            },
            "serving": SERVING | serving,
        }
    )


def searches(bm25_seconds: Line) -> tuple[ShardSearch, ...]:
    """Return searches that cost the same with few and many shards."""
    return tuple(
        ShardSearch(
            shards=shards,
            dense_seconds=Growth(points=((1000, 0.004), (1e6, 0.008))),
            bm25_seconds=bm25_seconds,
            join_seconds=0.001,
        )
        for shards in (1, 64)
    )


BUILDING = {
    "fixed_seconds": 20,
    "parse_core_seconds_per_citation": 1e-4,
    "split_core_seconds_per_citation": 1e-4,
    "encode_seconds_per_passage": 0.004,
    "stage_core_seconds_per_citation": 1e-4,
    "records_core_seconds_per_citation": 2e-4,
    "bm25_core_seconds_per_citation": 5e-4,
    "terms_core_seconds_per_citation": 1e-4,
    "hnsw_core_seconds_per_passage": {"points": ((1000, 4e-4), (1e6, 7.5e-4))},
    "merge_core_seconds_per_row": 1e-6,
    "publish_core_seconds": {"base": 1, "slope": 5e-5},
    "update_core_seconds_per_citation": 2e-3,
}
STAGE = ({"concurrent": 1, "median_seconds": 0.01, "p95_seconds": 0.02},)
SERVING: dict[str, object] = {
    "expand": STAGE,
    "encode": STAGE,
    "statistics_seconds": 0.001,
    "hits": 100,
    "searches": searches(Line(base=0.002, slope=1e-8)),
    "fetch_seconds": 0.004,
    "shard_p95_over_median": 1.5,
    "rerank_pairs": 20,
    "rerank": (
        {"concurrent": 1, "median_seconds": 0.2, "p95_seconds": 0.25},
        {"concurrent": 8, "median_seconds": 0.4, "p95_seconds": 0.5},
    ),
}
