"""Find the rows that one BM25 index of a segment holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tantivy

from cluster.index.bm25 import postings_of

# Rows per query, which bounds memory: a hit is a Python object of about 100 bytes.
CHUNK_ROWS = 50_000


def count_documents(directory: Path) -> int:
    """Return the number of documents. Raises ValueError or OSError if tantivy cannot read it."""
    with postings_of(directory) as index:
        return int(index.searcher().num_docs)


def absent_rows(directory: Path, rows: int) -> list[int]:
    """Return which of the rows 0 to `rows` - 1 have no document; raises as `count_documents`."""
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
