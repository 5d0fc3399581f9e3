"""Splits parsed citations into passages and gives each passage its vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster.arrow_records import CITATION_SCHEMA, citation_from_row, citations_to_table
from cluster.index.write_segment import EMBEDDED_SCHEMA, SECTION_CODES, SPANS
from cluster.records import Citation, Passage
from pipelines.split_passages import Splitter, split_citation

SPLIT_SCHEMA = CITATION_SCHEMA.append(pa.field("spans", SPANS))
Encode = Callable[[Sequence[str]], npt.NDArray[np.float32]]


def _span(passage: Passage) -> dict[str, int]:
    section = SECTION_CODES[passage.section]
    return {"section": section, "begin": passage.begin, "end": passage.end}


def split_citations(citations: Sequence[Citation], splitter: Splitter) -> pa.Table:
    """The citations in SPLIT_SCHEMA: each row with the spans of its passages."""
    spans = [[_span(p) for p in split_citation(c, splitter)] for c in citations]
    table = citations_to_table(citations)
    return table.append_column("spans", pa.array(spans, SPANS))


def _texts(row: dict[str, object], spans: Iterable[dict[str, int]]) -> list[str]:
    citation = citation_from_row(row)
    texts = (citation.title, citation.abstract)
    return [texts[s["section"]][s["begin"] : s["end"]] for s in spans]


def embed_citations(table: pa.Table, encode: Encode) -> pa.Table:
    """Add to rows in SPLIT_SCHEMA the vectors of their passages, giving EMBEDDED_SCHEMA.

    All passages of the table are encoded in one call, so that `encode` can sort them by
    length. Vectors are kept as 16-bit floats: their rounding, 5e-4, is far below the
    noise of an encoder that computes in bfloat16.
    """
    spans = table.column("spans").to_pylist()
    rows = table.select(CITATION_SCHEMA.names).to_pylist()
    texts = [_texts(row, s) for row, s in zip(rows, spans, strict=True)]
    vectors = encode([text for row in texts for text in row]).astype(np.float16)
    ends = np.cumsum([len(row) for row in texts])
    blobs = [vectors[end - len(row) : end].tobytes() for row, end in zip(texts, ends, strict=True)]
    column = pa.array(blobs, pa.large_binary())
    return table.append_column("vectors", column).cast(EMBEDDED_SCHEMA)
