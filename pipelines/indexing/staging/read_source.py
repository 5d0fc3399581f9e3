"""Read one source file into batches ready to embed, and write its account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from cluster.errors import SourceError
from cluster.pubmed.parse_articles import read_records
from cluster.pubmed.skipped_records import SKIP_REASONS
from cluster.records import Citation, Deletion, Rejected
from cluster.storage.locations import Location
from cluster.storage.object_store import File
from cluster.storage.whole_files import sha256_of
from pipelines.indexing.staging.embed_passages import split_citations
from pipelines.indexing.staging.split_passages import Splitter
from pipelines.indexing.staging.stage_citations import ParsedSource, positions_in, write_account

BATCH_CITATIONS = 256
# Approximate size of a gzipped PubMed record. Used for progress, the size of parts and the size of
# the sample for token vectors.
BYTES_PER_CITATION = 1000
# Maximum number of dropped records that an account describes; the rest are only counted.
EXAMPLES = 20


@dataclass
class _Tally:
    kept: int = 0
    deletions: list[Deletion] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def drop(self, record: Rejected) -> None:
        self.dropped[record.reason] += 1
        if record.reason in SKIP_REASONS:
            self.damaged.append(f"{record.source}, {record.detail}")
        elif len(self.examples) < EXAMPLES:
            self.examples.append(
                f"{record.source}, record {record.position}: {record.reason}: {record.detail}"
            )


def _batches(path: File, tally: _Tally, staged: frozenset[int]) -> Iterator[list[Citation]]:
    batch: list[Citation] = []
    for record in read_records(path, strict=False):
        if isinstance(record, Citation):
            tally.kept += 1
            if record.position not in staged:
                batch.append(record)
        elif isinstance(record, Deletion):
            tally.deletions.append(record)
        else:
            tally.drop(record)
        if len(batch) == BATCH_CITATIONS:
            yield batch
            batch = []
    yield batch


def read_source(
    path: File, directory: Location, splitter: Splitter, staged: Iterable[str] = ()
) -> Iterator[pa.Table]:
    """Yield tables in SPLIT_SCHEMA of the citations of `path`, and write its account.

    The account is written to `directory`. Citations at positions in the runs `staged` are counted
    but not yielded. The runs are an argument because a step that Ray retries must yield the same
    tables, even if more was staged since. A record that cannot be read is skipped and named in the
    account. A file that cannot be read to its end raises nothing: its account holds the error, the
    other files are processed, and the build reports the error at its end.
    """
    tally = _Tally()
    size = modified_ns = 0
    error = digest = ""
    try:
        found = path.stat()
        size, modified_ns = found.st_size, found.st_mtime_ns
        done = frozenset(positions_in(staged).tolist())
        for batch in _batches(path, tally, done):
            yield split_citations(batch, splitter)
        digest = sha256_of(path)
    except (SourceError, OSError) as problem:
        error = str(problem)
    account = ParsedSource(
        name=path.name,
        bytes=size,
        modified_ns=modified_ns,
        sha256=digest,
        read=tally.kept + len(tally.deletions) + tally.dropped.total(),
        kept=tally.kept,
        deletions=len(tally.deletions),
        dropped=dict(tally.dropped),
        examples=tuple(tally.examples),
        damaged=tuple(tally.damaged),
        error=error,
    )
    write_account(directory, account, tally.deletions)
