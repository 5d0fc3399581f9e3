"""Where things lie in an index directory, and which shard a citation belongs to.

CURRENT                               the published version's name and checksum
versions/v000001.json                 its manifest
versions/v000001.vocabulary.arrow     the entities of the corpus
versions/v000001.terms.arrow          how many units hold each term; later ones add theirs
versions/quantiser-<sha256>.faiss     trained and empty: what a version's vectors are coded by
versions/tokens-<sha256>.safetensors  what its tokens are coded by
segments/0003/<segment>/              one immutable segment of shard 3
    citations.arrow  passages.arrow  vectors.faiss  bm25-citations/  bm25-passages/
    tokens.bin                          the codes of the passages' tokens
    supersedes.arrow                    what it replaces and removes in older segments
    terms.arrow                         how many units hold each term, less those that it removes
    term-counts.arrow                   what it adds to the vocabulary
    filters.arrow                       filterable columns, a row a citation: year, flags, lists
    In an object store its name ends in a dot and eight characters of its own.
staging/<build>/                      a build or update under way; gone once published
LEASE, LEASE.lock                     who may write (cluster/index/lease.py)
"""

from __future__ import annotations

import hashlib
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
    """Folder, within a segment, of the BM25 index `over` "citations" or "passages"."""
    return f"bm25-{over}"


def shard_of(pmid: int, shards: int) -> int:
    """The shard, 0 to `shards` - 1, that holds `pmid`. Part of the index format."""
    digest = hashlib.blake2b(pmid.to_bytes(8, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


def segment_directory(shard: int, segment: str) -> Path:
    """Relative to the index directory."""
    return Path("segments") / f"{shard:04d}" / segment


def manifest_file(version: str) -> Path:
    """Path of a version's manifest, relative to the index location."""
    return Path("versions") / f"{version}.json"


def vocabulary_file(version: str) -> Path:
    """Path of a version's vocabulary, relative to the index location."""
    return Path("versions") / f"{version}.vocabulary.arrow"


def quantiser_file(sha256: str) -> Path:
    """Named by its content: the versions that share a quantiser share the file."""
    return Path("versions") / f"quantiser-{sha256[:16]}.faiss"


def codec_file(sha256: str) -> Path:
    """As `quantiser_file`, of the codec of token vectors."""
    return Path("versions") / f"tokens-{sha256[:16]}.safetensors"


def terms_file(version: str) -> Path:
    """Path of the counts of terms that a version adds, relative to the index location."""
    return Path("versions") / f"{version}.terms.arrow"
