"""Split parsed citations into passages and embed each passage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster.arrow_records import CITATION_SCHEMA, citation_from_row, citations_to_table
from cluster.index.write_segment import EMBEDDED_SCHEMA, SECTION_CODES, SPANS
from cluster.models.embedded import Embedded
from cluster.records import Citation, Passage
from cluster.text.tokenise import Tokenise, Tokens
from pipelines.indexing.staging.split_passages import Splitter, split_citation

if TYPE_CHECKING:
    from cluster.models.compress_tokens import Compress

SPLIT_SCHEMA = CITATION_SCHEMA.append(pa.field("spans", SPANS))
TOKENS = pa.large_list(pa.large_list(pa.int32()))
TOKENISED_SCHEMA = SPLIT_SCHEMA.append(pa.field("tokens", TOKENS))
Embed = Callable[[Sequence[str], "Compress | None"], Embedded]
EmbedTokens = Callable[[Sequence[Tokens], "Compress | None"], Embedded]


def _span(passage: Passage) -> dict[str, int]:
    section = SECTION_CODES[passage.section]
    return {"section": section, "begin": passage.begin, "end": passage.end}


def split_citations(citations: Sequence[Citation], splitter: Splitter) -> pa.Table:
    """Return the citations in SPLIT_SCHEMA: each row with the spans of its passages."""
    spans = [[_span(p) for p in split_citation(c, splitter)] for c in citations]
    table = citations_to_table(citations)
    return table.append_column("spans", pa.array(spans, SPANS))


def _texts(row: dict[str, object], spans: Iterable[dict[str, int]]) -> list[str]:
    citation = citation_from_row(row)
    texts = (citation.title, citation.abstract)
    return [texts[s["section"]][s["begin"] : s["end"]] for s in spans]


def _passages(table: pa.Table) -> list[list[str]]:
    """Return the passage texts of each row."""
    spans = table.column("spans").to_pylist()
    rows = table.select(CITATION_SCHEMA.names).to_pylist()
    return [_texts(row, s) for row, s in zip(rows, spans, strict=True)]


def embed_citations(table: pa.Table, embed: Embed, compress: Compress | None) -> pa.Table:
    """Embed the passages of rows in SPLIT_SCHEMA; return rows in EMBEDDED_SCHEMA.

    All passages of the table are embedded in one call, so that `embed` can sort them by length.
    Vectors are stored as 16-bit floats: their rounding error, 5e-4, is far below the noise of an
    encoder that computes in bfloat16.
    """
    texts = _passages(table)
    every = [text for row in texts for text in row]
    return _with_vectors(table, embed(every, compress), [len(row) for row in texts])


def tokenise_citations(table: pa.Table, tokenise: Tokenise) -> pa.Table:
    """Add the token ids of the passages to rows in SPLIT_SCHEMA; return TOKENISED_SCHEMA."""
    texts = _passages(table)
    ids = iter(tokenise([text for row in texts for text in row]))
    tokens = [list(islice(ids, len(row))) for row in texts]
    return table.append_column("tokens", pa.array(tokens, TOKENS)).cast(TOKENISED_SCHEMA)


def embed_tokens(table: pa.Table, embed: EmbedTokens, compress: Compress | None) -> pa.Table:
    """Like `embed_citations`, for rows in TOKENISED_SCHEMA."""
    rows = table.column("tokens").combine_chunks()
    passages = rows.flatten()
    ends = np.cumsum(pc.list_value_length(passages).to_numpy())[:-1]
    tokens = np.split(passages.flatten().to_numpy(), ends) if len(passages) else []
    counts = pc.list_value_length(rows).to_pylist()
    return _with_vectors(table.drop_columns("tokens"), embed(tokens, compress), counts)


def _with_vectors(table: pa.Table, embedded: Embedded, counts: Sequence[int]) -> pa.Table:
    vectors, codes = embedded.vectors.astype(np.float16), embedded.codes
    begins = np.cumsum(counts) - counts
    places = [slice(begin, begin + n) for begin, n in zip(begins, counts, strict=True)]
    columns = (
        ("vectors", [vectors[position].tobytes() for position in places]),
        ("token_counts", [[len(part) for part in codes[position]] for position in places]),
        ("codes", [b"".join(part.tobytes() for part in codes[position]) for position in places]),
    )
    for name, values in columns:
        table = table.append_column(name, pa.array(values, EMBEDDED_SCHEMA.field(name).type))
    return table.cast(EMBEDDED_SCHEMA)
