"""Which rows one side of a segment's BM25 holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tantivy

from cluster.index.bm25 import postings_of

# Hits are Python objects of some 100 bytes: these are all that are held at a time.
CHUNK_ROWS = 50_000


def count_documents(directory: Path) -> int:
    """How many documents are there. Raises ValueError or OSError where tantivy cannot tell."""
    with postings_of(directory) as index:
        return int(index.searcher().num_docs)


def absent_rows(directory: Path, rows: int) -> list[int]:
    """Which of the rows 0 to `rows` - 1 no document bears. Raises as `count_documents`."""
    absent: list[int] = []
    with postings_of(directory) as index:
        searcher = index.searcher()
        for begin in range(0, rows, CHUNK_ROWS):
            wanted = np.arange(begin, min(begin + CHUNK_ROWS, rows))
            query = tantivy.Query.range_query(
                index.schema, "row", tantivy.FieldType.Integer, int(wanted[0]), int(wanted[-1])
            )
            hits = searcher.search(query, len(wanted), count=False).hits
            found = searcher.fast_field_values("row", [address for _, address in hits])
            held = np.asarray([row for row in found if row is not None], np.int64)
            absent += np.setdiff1d(wanted, held).tolist()
    return absent
