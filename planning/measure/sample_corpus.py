"""Records for measurements: generated ones, or the first of the user's own files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from cluster.errors import InputError
from cluster.index.tokens.codec import Codes
from cluster.index.vectors import Vectors
from cluster.models.embedded import Embedded
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from cluster.storage.object_store import File
from pipelines.indexing.staging.embed_passages import embed_citations
from pipelines.indexing.staging.stage_citations import ParsedSource, write_account, write_part
from pipelines.sample.generate_citations import write_generated

GENERATED = "generated: 65% with abstracts of 1,300 characters, Zipf's words, 4,000 topics"
PART_ROWS = 2048


def sample_files(folder: Path, count: int, given: Sequence[File]) -> list[File]:
    """Return `given`, or a new file of `count` generated citations in `folder`."""
    return list(given) or list(write_generated(folder, count, per_file=count))


def read_sample(files: Sequence[File], count: int) -> tuple[list[Citation], int]:
    """Return the first `count` citations of the files, and the number of all.

    Raises InputError if there are too few to fit growth laws.
    """
    kept: list[Citation] = []
    total = 0
    for path in files:
        for record in read_records(path):
            if isinstance(record, Citation):
                total += 1
                if len(kept) < count:
                    kept.append(record)
    if len(kept) < count // 2:
        raise InputError(
            f"the sample holds {total:,} citations, but calibration needs {count:,}; name more "
            "files with --sample, or omit it to use generated citations"
        )
    return kept, total


@dataclass(frozen=True, slots=True)
class StandIn:
    """Substitute vectors for any number of passages: random mixtures of pairs of encoded ones.

    Encoding each passage would take hours. Mixtures keep the spread and the clusters of real
    vectors, on which the cost of an HNSW graph depends.
    """

    encoded: Vectors
    tokens_a_character: float = 0.0
    token_bytes: int = 0

    def codes(self, text: str) -> Codes:
        """Return about as many codes as `text` has tokens."""
        return np.zeros((round(len(text) * self.tokens_a_character), self.token_bytes), np.uint8)

    def vectors(self, count: int, seed: int = 0) -> Vectors:
        """Return unit vectors (count, d), float32, reproducibly for the same seed."""
        rng = np.random.default_rng(seed)
        first, second = rng.integers(len(self.encoded), size=(2, count))
        share = rng.uniform(0.0, 1.0, (count, 1)).astype(np.float32)
        mixed = share * self.encoded[first] + (1 - share) * self.encoded[second]
        norms = np.linalg.norm(mixed, axis=1, keepdims=True)
        return np.asarray(mixed / np.maximum(norms, 1e-9), np.float32)


def stage(table: pa.Table, directory: Path, stand_in: StandIn, vectors: Vectors) -> None:
    """Stage rows in SPLIT_SCHEMA for one shard, as a build does, with these vectors."""
    remaining: Iterator[np.ndarray] = iter(vectors)

    def embed(texts: Sequence[str], _: object) -> Embedded:
        rows = list(islice(remaining, len(texts)))
        made = np.asarray(rows, np.float32).reshape(len(texts), vectors.shape[1])
        return Embedded(made, [stand_in.codes(text) for text in texts])

    for begin in range(0, table.num_rows, PART_ROWS):
        write_part(embed_citations(table.slice(begin, PART_ROWS), embed, None), directory, 1)
    account = ParsedSource(name=directory.name, bytes=0, modified_ns=0, kept=table.num_rows)
    write_account(directory, account, [])
