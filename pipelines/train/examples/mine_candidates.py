"""Find the citations closest to a question, from which hard negatives are drawn.

Half of them come from BM25 and half from the untrained encoder, so that negatives are documents
that the model finds relevant (Karpukhin et al. 2020, section 3.2, and Xiong et al. 2021).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
import tantivy
from numpy.typing import NDArray

from cluster.storage.whole_files import write_atomically
from cluster.text.analysis import ANALYSER, analyse

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]

WRITER_HEAP_BYTES = 64 << 20
# Number of texts whose vectors are in memory at once.
BLOCK = 4096


def kept_candidates(
    file: Path, identity: str, mine: Callable[[], list[list[int]]]
) -> list[list[int]]:
    """Return the result of `mine`, cached in `file` for runs of the same `identity`."""
    if file.is_file():
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["identity"] == identity:
            rows: list[list[int]] = kept["candidates"]
            return rows
    found = mine()
    write_atomically(file, json.dumps({"identity": identity, "candidates": found}).encode())
    return found


def mine_candidates(
    texts: Sequence[str], questions: Sequence[str], queries: Vectors, encode: Encode, each: int
) -> list[list[int]]:
    """Return for each question the rows of its `each` best texts by BM25 and by `encode`.

    The two lists are interleaved. `queries` are the questions' vectors; like those of `encode`,
    they have length 1.
    """
    lexical = best_by_bm25(texts, questions, each)
    dense = best_by_vectors(texts, queries, encode, each)
    return [_in_turn(*pair) for pair in zip(lexical, dense.tolist(), strict=True)]


def _in_turn(first: Iterable[int], second: Iterable[int]) -> list[int]:
    mixed = chain.from_iterable(zip_longest(first, second))
    return list(dict.fromkeys(row for row in mixed if row is not None))


def best_by_bm25(texts: Sequence[str], questions: Sequence[str], limit: int) -> list[list[int]]:
    """Return for each question the `limit` best rows by tantivy's BM25 (k1 1.2, b 0.75)."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("row", fast=True)
    builder.add_text_field("body", tokenizer_name="whitespace", index_option="freq")
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(heap_size=WRITER_HEAP_BYTES, num_threads=1)
    for row, text in enumerate(texts):
        writer.add_document(tantivy.Document(row=row, body=ANALYSER.join_terms(text)))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    found = []
    for question in questions:
        terms = [
            tantivy.Query.term_query(schema, "body", term, index_option="freq")
            for term in dict.fromkeys(analyse(question))
        ]
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        hits = searcher.search(query, limit, count=False).hits if terms else []
        rows = searcher.fast_field_values("row", [address for _, address in hits])
        found.append([int(row) for row in rows])
    return found


def best_by_vectors(
    texts: Sequence[str], queries: Vectors, encode: Encode, limit: int
) -> NDArray[np.int64]:
    """Return the rows (questions, at most `limit`) with the largest inner products, best first.

    The vectors of only BLOCK texts are in memory at once.
    """
    scores = np.empty((len(queries), 0), np.float32)
    rows = np.empty((len(queries), 0), np.int64)
    for first in range(0, len(texts), BLOCK):
        block = encode(texts[first : first + BLOCK])
        here = np.arange(first, first + len(block), dtype=np.int64)
        scores = np.hstack([scores, queries @ block.T])
        rows = np.hstack([rows, np.broadcast_to(here, (len(queries), len(here)))])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :limit]
        scores = np.take_along_axis(scores, order, axis=1)
        rows = np.take_along_axis(rows, order, axis=1)
    return rows
