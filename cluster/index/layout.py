"""File layout of an index directory, and the shard that a citation belongs to.

CURRENT                               the published version's name and checksum
versions/v000001.json                 its manifest
versions/v000001.vocabulary.arrow     the concepts of the corpus and their names
versions/v000001.terms.arrow          numbers of citations and passages per term that it adds
versions/quantiser-<sha256>.faiss     trained, empty FAISS index that encodes the vectors
versions/tokens-<sha256>.safetensors  codec of the token vectors
segments/0003/<segment>/              one immutable segment of shard 3
    citations.arrow  passages.arrow  vectors.faiss  bm25-citations/  bm25-passages/
    tokens.bin                          the codes of the passages' tokens
    supersedes.arrow                    the PMIDs that it replaces or removes in older segments
    terms.arrow                         number of units that hold each term, minus removed ones
    term-counts.arrow                   counts of names that it adds to the vocabulary
    filters.arrow                       filterable columns, one row per citation
    (in an object store, <segment> ends in a dot and eight random characters)
segments/0003/<segment>.graph         the vectors.faiss of a segment in progress
staging/<build>/                      a build or update in progress; removed once published
LEASE, LEASE.lock                     the lease of the writer (cluster/index/lease.py)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

CURRENT = "CURRENT"
LEASE = "LEASE"
CITATIONS = "citations.arrow"
PASSAGES = "passages.arrow"
VECTORS = "vectors.faiss"
TOKENS = "tokens.bin"
FILTERS = "filters.arrow"
SUPERSEDES = "supersedes.arrow"
TERMS = "terms.arrow"
TERM_COUNTS = "term-counts.arrow"
SEGMENT = "segment.json"


def bm25_directory(over: str) -> str:
    """Return the folder in a segment of the BM25 index `over` "citations" or "passages"."""
    return f"bm25-{over}"


def shard_of(pmid: int, shards: int) -> int:
    """Return the shard, 0 to `shards` - 1, that holds `pmid`. Part of the index format."""
    digest = hashlib.blake2b(pmid.to_bytes(8, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


def pmids_by_shard(pmids: Iterable[int], shards: int) -> dict[int, list[int]]:
    """Return those `pmids` that each shard holds, in order; shards without any are left out."""
    found: dict[int, list[int]] = {}
    for pmid in pmids:
        found.setdefault(shard_of(pmid, shards), []).append(pmid)
    return found


def segment_directory(shard: int, segment: str) -> Path:
    """Return the path of a segment, relative to the index directory."""
    return Path("segments") / f"{shard:04d}" / segment


def graph_file(shard: int, segment: str) -> Path:
    """Return the path of the vectors of a segment that is not written yet."""
    return Path("segments") / f"{shard:04d}" / f"{segment}.graph"


def manifest_file(version: str) -> Path:
    """Return the path of a version's manifest, relative to the index location."""
    return Path("versions") / f"{version}.json"


def vocabulary_file(version: str) -> Path:
    """Return the path of a version's vocabulary, relative to the index location."""
    return Path("versions") / f"{version}.vocabulary.arrow"


def quantiser_file(sha256: str) -> Path:
    """Return the path of a quantiser, named by its content so that versions can share it."""
    return Path("versions") / f"quantiser-{sha256[:16]}.faiss"


def codec_file(sha256: str) -> Path:
    """Return the path of a codec of token vectors, named by its content."""
    return Path("versions") / f"tokens-{sha256[:16]}.safetensors"


def terms_file(version: str) -> Path:
    """Return the path of the term counts that a version adds, relative to the index location."""
    return Path("versions") / f"{version}.terms.arrow"
