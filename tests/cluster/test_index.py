import math
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from cluster.errors import IndexFormatError
from cluster.index.bm25 import Bm25Query
from cluster.index.filters.filters import NO_FILTERS, Filters
from cluster.index.layout import CURRENT, shard_of
from cluster.index.manifest import Manifest, current_version, read_manifest
from cluster.index.read_segment import SegmentReader
from cluster.index.read_shard import ShardQuery, ShardReader, limit_of_shard
from cluster.text.analysis import analyse
from pipelines.sample.generate_citations import generate_citations
from tests.publish_manifest import publish
from tests.small_index import bag_of_words, citation, make_index

pytestmark = pytest.mark.slow

DRUGS = [
    citation(5, "Metformin activates AMPK in the liver.", "Metformin and AMPK"),
    citation(3, "Warfarin inhibits VKORC1 and thins the blood."),
    citation(9, "Imatinib inhibits the BCR-ABL kinase in leukaemia.", "Imatinib"),
    citation(7, "", "A title alone about metformin"),
    citation(11, "", ""),
]


def open_shards(
    index: Path, manifest: Manifest, exact_below: int = 10**9, ef_search: int = 64
) -> list[ShardReader]:
    return [
        ShardReader(index, n, entry, ef_search=ef_search, exact_below=exact_below)
        for n, entry in enumerate(manifest.shards)
    ]


def bm25_query(text: str, shards: list[ShardReader], manifest: Manifest, over: str) -> Bm25Query:
    weights = dict.fromkeys(analyse(text), 1.0)
    frequencies = dict.fromkeys(weights, 0)
    for shard in shards:
        for term, count in shard.frequencies(list(weights), over).items():
            frequencies[term] += count
    units = sum(entry.units(over) for entry in manifest.shards)
    mean = sum(entry.live_terms(over) for entry in manifest.shards) / max(units, 1)
    return Bm25Query(weights, frequencies, units, mean, k1=0.9, b=0.4)


def lucene_score(query: Bm25Query, text: str) -> float:
    """Lucene's BM25 of a unit with the given text."""
    terms = analyse(text)
    counts = Counter(terms)
    norm = query.k1 * (1 - query.b + query.b * len(terms) / query.mean_terms)
    return sum(
        weight * query.idf(term) * counts[term] / (counts[term] + norm)
        for term, weight in query.weights.items()
        if term in counts
    )


def scores(
    shards: list[ShardReader],
    manifest: Manifest,
    text: str,
    over: Literal["citations", "passages"] = "citations",
    filters: Filters = NO_FILTERS,
) -> dict[int, tuple[float, float]]:
    """Return the dense and BM25 scores of every candidate by PMID."""
    bm25 = bm25_query(text, shards, manifest, over)
    query = ShardQuery(bag_of_words([text])[0], bm25, 50, 50, over, filters=filters)
    rows = [
        (int(p), (float(d), float(b)))
        for found in (shard.search(query) for shard in shards)
        for p, d, b in zip(found.pmids, found.dense, found.bm25, strict=True)
    ]
    assert len({pmid for pmid, _ in rows}) == len(rows)
    return dict(sorted(rows))


def test_citations_are_stored_completely(tmp_path: Path) -> None:
    manifest = make_index(tmp_path, DRUGS)
    shards = open_shards(tmp_path, manifest)
    for wanted in DRUGS:
        assert shards[shard_of(wanted.pmid, 2)].citation(wanted.pmid) == wanted
    assert [shard.citation(4) for shard in shards] == [None, None]


def test_bm25_equals_lucenes_formula(tmp_path: Path) -> None:
    texts = ["aspirin aspirin fever", "aspirin pain", "fever pain cough cough"]
    manifest = make_index(tmp_path, [citation(i + 1, t) for i, t in enumerate(texts)], shards=1)
    rows = scores(open_shards(tmp_path, manifest), manifest, "aspirin")
    # 3 units, 2 of them with the term, lengths 3, 2, 4, mean 3; idf = ln(1 + 1.5 / 2.5).
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    first = idf * 2 / (2 + 0.9 * (1 - 0.4 + 0.4 * 3 / 3))
    second = idf * 1 / (1 + 0.9 * (1 - 0.4 + 0.4 * 2 / 3))
    assert {pmid: score for pmid, (_, score) in rows.items() if score > 0} == pytest.approx(
        {1: first, 2: second}, rel=1e-5
    )


@pytest.mark.parametrize("limit", [1, 3, 10])
@pytest.mark.durability
@pytest.mark.nightly
def test_best_by_lucenes_bm25_are_found(tmp_path: Path, limit: int) -> None:
    """Long citations that repeat a word, which tantivy's own k1 and b rank differently."""
    citations = [
        citation(n, " ".join(["kinase"] * (n % 13 + 1) + ["filler"] * (n * 37 % 301)))
        for n in range(1, 1500)
    ]
    manifest = make_index(tmp_path, citations, shards=1)
    shards = open_shards(tmp_path, manifest)
    query = bm25_query("kinase filler", shards, manifest, "citations")
    scores = {c.pmid: lucene_score(query, c.search_text) for c in citations}
    best = sorted(scores, key=lambda pmid: (-scores[pmid], pmid))[:limit]
    [segment] = shards[0].segments
    rows, found = segment.search_bm25(query, limit, "citations")
    assert segment.pmids[rows].tolist() == best
    assert found.tolist() == pytest.approx([scores[p] for p in best])


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["flat", "fp16", "sq8"])
def test_graph_search_has_high_recall(tmp_path: Path, vectors: str) -> None:
    citations = list(generate_citations(400, seed=3))
    manifest = make_index(tmp_path, citations, shards=1, vectors=vectors)
    exact = open_shards(tmp_path, manifest)[0].segments[0]
    graph = open_shards(tmp_path, manifest, exact_below=0, ef_search=128)[0].segments[0]
    queries = bag_of_words([c.search_text[:100] for c in citations[:20]])
    shared = [
        len(np.intersect1d(exact.search_dense(q, 10)[0], graph.search_dense(q, 10)[0])) / 10
        for q in queries
    ]
    assert np.mean(shared) >= 0.95


def hiding(segment: SegmentReader, pmids: Iterable[int]) -> SegmentReader:
    """Return a reader of the segment for a version with newer records of `pmids`."""
    return SegmentReader(segment.opened, np.asarray(list(pmids)))


def test_live_citation_is_found_behind_dead_hits(tmp_path: Path) -> None:
    dead = [citation(pmid, "kinase kinase kinase") for pmid in range(1, 501)]
    manifest = make_index(tmp_path, [*dead, citation(501, "A kinase and more.")], shards=1)
    shards = open_shards(tmp_path, manifest)
    [segment] = shards[0].segments
    segment = hiding(segment, range(1, 501))
    query = bm25_query("kinase", shards, manifest, "citations")
    rows, _ = segment.search_bm25(query, 3, "citations")
    assert segment.pmids[rows].tolist() == [501]


def test_unordered_citations_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(IndexFormatError, match="PMID 4 after 4"):
        make_index(tmp_path, [citation(4, "One."), citation(4, "Two.")], shards=1)


@pytest.mark.parametrize(
    "name", ["citations.arrow", "passages.arrow", "vectors.faiss", "bm25-citations/meta.json"]
)
def test_changed_or_missing_file_is_rejected(tmp_path: Path, name: str) -> None:
    manifest = make_index(tmp_path, DRUGS, shards=1)
    path = next((tmp_path / "segments").rglob(name))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(IndexFormatError, match=path.name):
        open_shards(tmp_path, manifest)
    path.unlink()
    with pytest.raises(IndexFormatError, match=f"{path.name}: missing"):
        open_shards(tmp_path, manifest)


def test_empty_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(IndexFormatError, match="citeray index build"):
        read_manifest(tmp_path)
    assert current_version(tmp_path) is None


def test_unknown_format_is_rejected(tmp_path: Path) -> None:
    manifest = make_index(tmp_path, DRUGS)
    publish(tmp_path, manifest.model_copy(update={"format": 99}))
    with pytest.raises(IndexFormatError, match="index format 99"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": "v1"}'])
def test_damaged_pointer_is_rejected(tmp_path: Path, text: str) -> None:
    make_index(tmp_path, DRUGS)
    (tmp_path / CURRENT).write_text(text)
    with pytest.raises(IndexFormatError, match="CURRENT"):
        read_manifest(tmp_path)


def test_shard_of_pmid_is_stable() -> None:
    # The last hex digit of `b2sum --length 64` over the PMID as eight big-endian bytes.
    digests = {
        1: 0x5199C35D28EFDAB8,
        2: 0xFC52CCEAF0D349F5,
        31452104: 0x1A2D2F1A3423CE3D,
        90000001: 0x6C56469D92697BFE,
    }
    assert {p: shard_of(p, 16) for p in digests} == {p: d % 16 for p, d in digests.items()}


def test_limit_of_shard_is_known_for_long_lists() -> None:
    """With 1,000 excluded PMIDs, the binomial coefficients exceed the range of a float."""
    assert limit_of_shard(1100, 1) == 1100
    assert 550 < limit_of_shard(1100, 2) < 700


@pytest.mark.parametrize(("limit", "shards"), [(100, 4), (100, 128), (1000, 16), (10, 2), (5, 64)])
def test_limit_of_shard_covers_the_best_hits(limit: int, shards: int) -> None:
    chance = random.Random(0)
    for _ in range(200):
        best = chance.sample(range(1, 40_000_000), limit)
        most = max(Counter(shard_of(pmid, shards) for pmid in best).values())
        assert most <= limit_of_shard(limit, shards)
